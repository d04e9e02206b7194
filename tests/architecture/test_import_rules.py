"""Who may import whom. The rules are contracts in pyproject.toml; import-linter checks them."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from source_tree import ROOT

VIOLATIONS = [
    ("inference_engine/scheduling/request.py", "import torch", "scheduling imports only the contract"),
    ("inference_engine/scheduling/fcfs.py", "import time", "scheduling imports only the contract"),
    ("inference_engine/contract/codes.py", "import django", "The engine knows nothing of the platform"),
    ("inference_engine/serving/settings.py", "import torch", "Only execution imports torch"),
    ("platform/tenants/services.py", "import transformers", "Of the engine the platform imports only"),
    ("platform/tenants/services.py", "import api_keys.services", "Apps depend one way"),
    ("platform/admission/gate.py", "import management.services", "Apps depend one way"),
    ("platform/management/urls.py", "import console.admin", "Apps depend one way"),
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{folder}:{folder / 'platform'}"}
    program = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_contract_is_kept() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def copy_of_the_code(folder: Path) -> Path:
    for name in ("inference_engine", "platform"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(("file", "line", "contract"), VIOLATIONS)
def test_a_forbidden_import_is_noticed(file: str, line: str, contract: str, tmp_path: Path) -> None:
    folder = copy_of_the_code(tmp_path)
    changed = folder / file
    changed.write_text(f"{line}\n{changed.read_text()}")
    done = lint_imports(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN")]
    assert any(contract in text for text in broken), broken


def test_every_app_and_every_room_is_under_the_rules() -> None:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts = {" ".join(contract["name"].split()[:2]): contract for contract in rules["contracts"]}
    apps = {path.parent.name for path in (ROOT / "platform").glob("*/__init__.py")}
    folders = {path.parent.name for path in (ROOT / "inference_engine").glob("*/__init__.py")}
    rooms = {f"inference_engine.{name}" for name in folders}
    layered = {app for line in contracts["Apps depend"]["layers"] for app in line.split(" | ")}
    assert set(rules["root_packages"]) == apps | {"inference_engine"}
    assert layered == apps - {"control_plane"}
    assert set(contracts["Only execution"]["source_modules"]) == apps | rooms - {"inference_engine.execution"}
    assert set(contracts["Of the"]["source_modules"]) == apps
    assert rooms - {"inference_engine.contract"} < set(contracts["Of the"]["forbidden_modules"])
    assert apps <= set(contracts["The engine"]["forbidden_modules"])
