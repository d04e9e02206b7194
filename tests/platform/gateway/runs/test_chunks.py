"""Events built from parts are what encoding them whole would give."""

import json

from gateway.runs.chunks import ChunkWriter, encode

IDENTITY = {"id": "a", "object": "o", "created": 1, "model": 'm"', "system_fingerprint": "f"}


def parsed(event: bytes) -> dict[str, object]:
    assert event.startswith(b"data: ") and event.endswith(b"\n\n") and event.count(b"\n") == 2
    return dict(json.loads(event[6:]))


def test_a_plain_choice() -> None:
    event = ChunkWriter(IDENTITY, include_usage=False).choice(3, b'"text":"x"')
    choice = {"index": 3, "text": "x", "logprobs": None, "finish_reason": None}
    assert parsed(event) == IDENTITY | {"choices": [choice]}


def test_everything_at_once() -> None:
    writer = ChunkWriter(IDENTITY, include_usage=True)
    event = writer.choice(
        0,
        b'"text":""',
        logprobs=b'{"a":1}',
        finish_reason=b'"stop"',
        extra=b',"token_ids":[1]',
        extra_of_chunk=b',"prompt_token_ids":[2]',
    )
    choice = {"index": 0, "text": "", "logprobs": {"a": 1}, "finish_reason": "stop", "token_ids": [1]}
    assert parsed(event) == IDENTITY | {"choices": [choice], "prompt_token_ids": [2], "usage": None}


def test_usage_has_no_choices() -> None:
    event = ChunkWriter(IDENTITY, include_usage=True).usage({"total_tokens": 3})
    assert parsed(event) == IDENTITY | {"choices": [], "usage": {"total_tokens": 3}}


def test_an_event_is_one_line_however_lines_are_told() -> None:
    text = "".join(map(chr, range(256))) + "a\u2028b\u2029c😀"
    data = encode(text)
    assert len(data.decode().splitlines()) == 1
    assert json.loads(data) == text
