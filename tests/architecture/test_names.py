"""A reader finds the room from the folder's name and the wall from the file's."""

import re

from source_tree import ROOT, python_files, relative

SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "core", "manager", "managers", "base", "misc"}
LEFT_OPEN = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
ROOMS = {"contract", "scheduling", "execution", "constraints", "serving", "simulation"}


def test_no_module_or_folder_has_a_name_that_says_nothing() -> None:
    names = {part.removesuffix(".py") for path in python_files() for part in relative(path).split("/")}
    assert not names & SAYS_NOTHING


def test_nothing_is_left_open_in_the_code() -> None:
    found = [relative(path) for path in python_files() if LEFT_OPEN.search(path.read_text())]
    assert found == []


def test_the_engine_s_rooms_are_those_of_the_plan() -> None:
    rooms = {path.parent.name for path in (ROOT / "inference_engine").glob("*/__init__.py")}
    assert rooms <= ROOMS


def test_tests_have_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []
