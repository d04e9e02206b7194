"""What a page promises exists, and what exists is on a page."""

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from inference_engine.serving.settings import VARIABLES, Settings
from source_tree import ROOT, python_files, relative

SETTING = re.compile(r"\bOCTAVO_[A-Z][A-Z0-9_]*\b")
TEST_SETTING = "OCTAVO_TEST_"
PLACE = re.compile(r"`((?:inference_engine|platform|tests)/[\w/.-]+\.(?:py|cpp))(?::([\w.]+))?`")
COMMAND = re.compile(r"(?:`(?:\w+=\S+ )?|^)make ([a-z-]+)", re.MULTILINE)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def used_settings() -> set[str]:
    """Names in the code, and those that the engine derives from its fields."""
    texts = [path.read_text() for path in [*python_files(), ROOT / "Makefile", ROOT / ".ci" / "run"]]
    named = {name for text in texts for name in SETTING.findall(text)}
    derived = {
        name
        for field in fields(Settings)
        for name in VARIABLES.get(field.name, (f"OCTAVO_{field.name.upper()}",))
    }
    return {name for name in named | derived if name.startswith("OCTAVO_") and not name.endswith("_")}


def documented_settings() -> set[str]:
    return set(SETTING.findall((ROOT / "docs/settings.md").read_text()))


def test_every_setting_is_documented() -> None:
    assert used_settings() - documented_settings() == set()


def test_every_documented_setting_exists() -> None:
    in_tests = {name for path in (ROOT / "tests").rglob("*.py") for name in SETTING.findall(path.read_text())}
    tested = {name for name in in_tests if name.startswith(TEST_SETTING)}
    assert documented_settings() - used_settings() - tested == set()


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_target_says_what_it_does() -> None:
    described = set(re.findall(r"^([a-z][a-z-]*):.*## \S", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert makefile_targets() == described
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == makefile_targets()


def test_every_command_on_a_page_exists() -> None:
    named = {word for page in PAGES for word in COMMAND.findall(page.read_text())}
    assert {"up", "test", "doctor"} <= named
    assert named - makefile_targets() == set()


def definitions(tree: ast.AST, prefix: str = "") -> set[str]:
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            found |= {name} | definitions(node, f"{name}.")
    return found


def exists(file: str, name: str) -> bool:
    path = ROOT / file
    if not path.is_file():
        return False
    if not name:
        return True
    if path.suffix == ".cpp":
        return re.search(rf"\b{re.escape(name)}\b", path.read_text()) is not None
    return name in definitions(ast.parse(path.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_place_that_a_page_names_exists(page: Path) -> None:
    named = PLACE.findall(page.read_text())
    assert [f"{file}:{name}" for file, name in named if not exists(file, name)] == []


def test_the_map_follows_a_request_through_every_room() -> None:
    files = {file for file, name in PLACE.findall((ROOT / "docs/map.md").read_text()) if name}
    rooms = {"/".join(file.split("/")[:2]) for file in files}
    needed = {
        "platform/gateway",
        "platform/api_keys",
        "platform/text",
        "platform/admission",
        "platform/quotas",
    }
    needed |= {"platform/fleet", "platform/usage", "inference_engine/serving", "inference_engine/scheduling"}
    assert needed | {"inference_engine/execution"} <= rooms


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{relative(page)} -> {target}"


def test_the_version_stands_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
