"""docs/api.md names every field and every code, and no others."""

import re
from pathlib import Path

from msgspec import structs

from gateway.chat.body import ChatBody
from gateway.completions.body import CompletionBody
from gateway.errors import SHAPES
from gateway.orders.neutral import ACCEPTED, NEUTRAL

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def names(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)(?:\.[a-z_]+)?`", text))


def test_every_field_is_on_the_page() -> None:
    every = {field.name for kind in (ChatBody, CompletionBody) for field in structs.fields(kind)}
    assert every <= names(section("Fields"))
    assert {name.split(".")[0] for name in ACCEPTED} <= names(section("Fields"))


def test_fields_that_are_not_served_are_in_their_own_table() -> None:
    table = section("Fields").split("Not served yet")[1]
    assert set(NEUTRAL) <= names(table)
    assert names(table) - {"unsupported_parameter"} == set(NEUTRAL)


def test_every_code_is_on_the_page_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.*) \|$", section("Errors"), re.MULTILINE)
    listed = {code: int(status) for status, codes in rows for code in names(codes)}
    assert listed == {code.value: shape.status for code, shape in SHAPES.items()}
