"""Stream entries as rows: whatever a client put into them, a row or a clear refusal."""

import json
from datetime import UTC, datetime

import pytest

from stream_rows import STREAM_ROW
from usage.ledger_rows import UnreadableRow, abandoned_row, decoded, ledger_entry

PLAIN = {
    name: value for name, value in STREAM_ROW.items() if name not in ("prompt_tokens", "output_tokens")
} | {"admitted_at": "10.5", "finished_at": "12.25"}


def test_absent_fields_take_their_neutral_values() -> None:
    entry = ledger_entry(PLAIN)
    assert (entry.prompt_tokens, entry.output_tokens, entry.first_token_at, entry.queue_ms) == (
        0,
        0,
        None,
        None,
    )
    assert entry.admitted_at == datetime.fromtimestamp(10.5, UTC)
    assert (entry.user, entry.metadata, entry.code) == ("", {}, "")


def test_everything_is_read() -> None:
    more = {
        "first_token_at": "11",
        "queue_ms": "1.5",
        "output_tokens": "9",
        "metadata": '{"a": "b"}',
        "code": "x",
    }
    entry = ledger_entry({**PLAIN, **more, "reserved_tokens": "99"})
    assert entry.first_token_at == datetime.fromtimestamp(11, UTC)
    assert (entry.queue_ms, entry.output_tokens, entry.metadata, entry.code) == (1.5, 9, {"a": "b"}, "x")


@pytest.mark.parametrize(
    "broken",
    [
        {"request_id": ""},
        {"tenant_id": "x"},
        {"tenant_id": str(2**70)},
        {"admitted_at": ""},
        {"finished_at": "soon"},
        {"finished_at": "1e300"},
        {"finished_at": "nan"},
        {"ending": "exploded"},
        {"source": ""},
        {"output_tokens": "many"},
        {"metadata": "{"},
    ],
)
def test_what_is_no_row_is_refused(broken: dict[str, str]) -> None:
    with pytest.raises(UnreadableRow):
        ledger_entry({**PLAIN, **broken})


def test_what_no_column_holds_is_cut_or_left_out() -> None:
    entry = ledger_entry(
        {
            **PLAIN,
            "user": "a\x00b" + "ü" * 5000,
            "metadata": '{"a": "x\\u0000y"}',
            "output_tokens": str(10**12),
            "cached_tokens": "-5",
        }
    )
    assert entry.user.startswith("abü") and len(entry.user) == 512
    assert entry.metadata == {"a": "xy"}
    assert (entry.output_tokens, entry.cached_tokens) == (2**31 - 1, 0)


@pytest.mark.parametrize("text", ["\\u0000", "a\\u0000b", "\\", "\\\\u0000", "\\ud800"])
def test_metadata_that_looks_like_an_escape_is_text(text: str) -> None:
    """Taken for one it broke the JSON, and whoever sent it was not billed."""
    assert ledger_entry({**PLAIN, "metadata": json.dumps({text: text})}).metadata == {text: text}


def test_bytes_that_are_no_text_are_still_an_entry() -> None:
    assert decoded({b"user": b"\xff\xfe"}) == {"user": "\ufffd\ufffd"}


def test_an_abandoned_request_is_a_row() -> None:
    held = {**PLAIN, "output_tokens": "3", "prompt_tokens": "7"}
    entry = ledger_entry({**held, **abandoned_row({**held, "engine_usage:r": "0 1 0 5 r"}, now=20.0)})
    assert (entry.output_tokens, entry.prompt_tokens) == (5, 7)
    assert (entry.ending, entry.code, entry.source) == ("failed", "internal_error", "estimated")


def test_whoever_saw_more_of_an_abandoned_request_is_believed() -> None:
    held = {
        "prompt_tokens": "7",
        "output_tokens": "30",
        "engine_usage:r": "0 9 0 5 r",
    }
    row = abandoned_row(held, now=20.0)
    assert (row["prompt_tokens"], row["output_tokens"]) == ("9", "30")
