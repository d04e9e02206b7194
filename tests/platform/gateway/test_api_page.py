"""docs/api.md names every field and every code, and no others."""

import re
from pathlib import Path

import pytest
from msgspec import Struct, structs

from gateway.chat.body import ChatBody
from gateway.completions.body import CompletionBody
from gateway.embeddings.body import EmbeddingsBody
from gateway.errors import SHAPES
from gateway.live.closing import CloseCode
from gateway.messages.body import MessagesBody
from gateway.orders.neutral import ACCEPTED, NEUTRAL
from gateway.responses.body import ResponseBody
from gateway.tokens.body import DetokenizeBody, TokenizeBody

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


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (ResponseBody, "Responses"),
        (MessagesBody, "Messages"),
        (TokenizeBody, "Tokens"),
        (DetokenizeBody, "Tokens"),
        (EmbeddingsBody, "Embeddings"),
    ],
)
def test_fields_of_other_interfaces_are_in_their_sections(kind: type[Struct], title: str) -> None:
    assert {field.encode_name for field in structs.fields(kind)} - names(section(title)) == set()


def test_close_codes_are_on_the_page() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", section("WebSocket"), re.MULTILINE)
    listed = {int(code) for row in rows for code in row.split(",")}
    assert set(CloseCode) <= listed


def test_every_code_is_on_the_page_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.*) \|$", section("Errors"), re.MULTILINE)
    listed = {code: int(status) for status, codes in rows for code in names(codes)}
    assert listed == {code.value: shape.status for code, shape in SHAPES.items()}
