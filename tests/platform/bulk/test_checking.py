"""Is a file a batch's input? Case 32, and whatever else a file may hold."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bulk.batches.checking import InputCheck
from bulk.batches.input_lines import raw_lines
from bulk.limits import MAX_ERRORS, MAX_LINE_BYTES, MAX_LINES
from source_tree import ROOT

ENDPOINT = "/v1/chat/completions"


def line(custom_id: str = "a", **changes: Any) -> bytes:
    whole = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": {"model": "m"}, **changes}
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def check(content: bytes) -> tuple[list[str], list[tuple[Any, Any, Any]]]:
    """Custom ids of the good lines; line, code and param of what is wrong."""
    checked = InputCheck(ENDPOINT)
    good = [found.custom_id for found in checked.good_lines(io.BytesIO(content))]
    return good, [(error["line"], error["code"], error["param"]) for error in checked.errors]


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join([line("a"), line("b")]),
        b"\n".join([line("a"), line("b"), b""]),
        b"\n".join([line("a"), b"", line("b"), b"  ", b""]),
        b"\r\n".join([line("a"), line("b"), b""]),
        b"\xef\xbb\xbf" + b"\n".join([line("a"), line("b")]),
        b"\xef\xbb\xbf" + b"\r\n".join([line("a"), line("b"), b"", b""]),
    ],
)
def test_line_ends_a_byte_order_mark_and_blank_lines_are_fine(content: bytes) -> None:
    assert check(content) == (["a", "b"], [])


def test_each_good_line_is_found_again_by_its_place() -> None:
    content = b"\xef\xbb\xbf" + b"\r\n".join([line("a"), b"", line("b")]) + b"\n"
    checked = InputCheck(ENDPOINT)
    for good in checked.good_lines(io.BytesIO(content)):
        assert json.loads(content[good.offset : good.offset + good.length])["custom_id"] == good.custom_id


@pytest.mark.parametrize(
    ("bad", "code", "param"),
    [
        (line(""), "invalid_request", "custom_id"),
        (line(custom_id="x" * 513), "invalid_request", "custom_id"),
        (line("a\0"), "invalid_request", "custom_id"),
        (line(custom_id=5), "invalid_request", "custom_id"),  # type: ignore[arg-type]
        (line(custom_id=None), "invalid_request", "custom_id"),  # type: ignore[arg-type]
        (line("first"), "duplicate_custom_id", "custom_id"),
        (line(url="/v1/completions"), "mismatched_endpoint", "url"),
        (line(method="GET"), "invalid_request", "method"),
        (line(body=None), "invalid_request", "body"),
        (line(body=[1]), "invalid_request", "body"),
        (line(priority=1), "invalid_request", "priority"),
        (b"5", "invalid_request", None),
        (b"[]", "invalid_request", None),
        (b"{", "invalid_json", None),
        (b'{"custom_id": "\xff"}', "invalid_json", None),
        (
            b'{"custom_id":"a","custom_id":"b","method":"POST","url":"u","body":{}}',
            "invalid_json",
            "custom_id",
        ),
        (b'{"custom_id":"a","body":' + b"[" * 100_000, "invalid_json", None),
        (b'{"custom_id":"a","body":' + b'{"a":' * 100_000, "invalid_json", None),
        (b"\0" * 100, "invalid_json", None),
    ],
)
def test_what_is_wrong_has_the_number_of_its_line(bad: bytes, code: str, param: str | None) -> None:
    good, errors = check(b"\n".join([line("first"), bad, line("last")]))
    assert good == ["first", "last"]
    assert errors == [(2, code, param)]


def test_an_endless_line_is_passed_over_and_the_next_one_read() -> None:
    content = line("a") + b"\n" + b"x" * (3 * MAX_LINE_BYTES) + b"\n" + line("b")
    assert check(content) == (["a", "b"], [(2, "line_too_long", None)])


def test_a_line_may_be_as_long_as_it_may_be() -> None:
    padding = MAX_LINE_BYTES - len(line(body={"p": ""}))
    content = line(body={"p": "x" * padding}) + b"\n" + line("b")
    assert check(content) == (["a", "b"], [])


def test_an_empty_file_and_one_of_blank_lines_have_no_lines() -> None:
    assert check(b"") == ([], [(None, "empty_file", None)])
    assert check(b"\n\r\n  \n") == ([], [(None, "empty_file", None)])


def test_there_are_no_more_errors_than_somebody_reads() -> None:
    assert len(check(b"nonsense\n" * (3 * MAX_ERRORS))[1]) == MAX_ERRORS


def test_one_line_too_many_is_the_last_that_is_looked_at() -> None:
    content = b"".join(line(str(number)) + b"\n" for number in range(MAX_LINES + 5))
    good, errors = check(content)
    assert len(good) == MAX_LINES
    assert errors == [(MAX_LINES + 1, "too_many_lines", None)]


def test_offsets_count_what_was_passed_over() -> None:
    content = b"x" * (MAX_LINE_BYTES + 10) + b"\nabc\n"
    assert [(found.number, found.offset) for found in raw_lines(io.BytesIO(content))] == [
        (1, 0),
        (2, MAX_LINE_BYTES + 11),
    ]


BOUNDED = """
import django, resource, sys, time
django.setup()
from bulk.batches.checking import InputCheck
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before, began = peak(), time.monotonic()
checked = InputCheck("/v1/chat/completions")
with open(sys.argv[1], "rb") as content:
    number = sum(1 for _ in checked.good_lines(content))
print(number, len(checked.errors), peak() - before, peak(), round(time.monotonic() - began, 1))
"""


def test_fifty_thousand_lines_of_200_megabytes_are_checked_in_bounded_memory(tmp_path: Path) -> None:
    """In a process of its own, whose peak is measured. Prints its growth and size in MiB, and seconds."""
    path = tmp_path / "lines.jsonl"
    with open(path, "wb") as content:
        for number in range(MAX_LINES):
            head = line(f"request-{number}", body={"model": "m", "messages": "PAD"})
            content.write(head.replace(b"PAD", b"x" * (3999 - len(head) + 3)) + b"\n")
    assert path.stat().st_size == 200_000_000
    environment = {"DJANGO_SETTINGS_MODULE": "control_plane.settings", "OCTAVO_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(path)],
        env=environment | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"},
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    number, num_errors, growth, *_ = map(float, done.stdout.split())
    assert (number, num_errors) == (MAX_LINES, 0)
    assert growth < 48
