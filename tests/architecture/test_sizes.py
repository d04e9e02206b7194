"""Walls: 300 lines a module, 40 lines a function. An exception is a line in docs/decisions that says why:

Size exception: inference_engine/some/module.py - why
Size exception: inference_engine/some/module.py:Class.function - why
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from source_tree import decision_lines, python_files, relative

MODULE_WALL = 300
FUNCTION_WALL = 40


def exceptions() -> dict[str, str]:
    """Place -> reason."""
    pairs = (line.partition(" - ") for line in decision_lines("Size exception:"))
    return {place.strip(): reason for place, _, reason in pairs}


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """(qualified name, lines from `def` to its last line) of every function."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{node.name}".lstrip(".")
            if not isinstance(node, ast.ClassDef):
                yield name, (node.end_lineno or node.lineno) - node.lineno + 1
        yield from functions(node, name)


def too_large(path: Path) -> Iterator[str]:
    text = path.read_text()
    if len(text.splitlines()) > MODULE_WALL:
        yield relative(path)
    for name, lines in functions(ast.parse(text)):
        if lines > FUNCTION_WALL:
            yield f"{relative(path)}:{name}"


def test_modules_and_functions_stay_within_the_walls() -> None:
    found = {place for path in python_files() for place in too_large(path)}
    assert found - exceptions().keys() == set()


def test_every_exception_is_still_needed_and_says_why() -> None:
    found = {place for path in python_files() for place in too_large(path)}
    assert exceptions().keys() - found == set()
    assert all(len(reason) > 10 for reason in exceptions().values())


@pytest.mark.parametrize(("lines", "expected"), [(FUNCTION_WALL, []), (FUNCTION_WALL + 1, ["C.f"])])
def test_the_measure_itself(lines: int, expected: list[str]) -> None:
    body = "\n".join(["        pass"] * (lines - 1))
    measured = functions(ast.parse(f"class C:\n    def f(self):\n{body}\n"))
    assert [name for name, count in measured if count > FUNCTION_WALL] == expected
