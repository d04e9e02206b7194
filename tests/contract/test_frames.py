"""Frames that must not be read: other versions, too large, cut off, of a wrong shape."""

from typing import Any

import pytest
from msgspec import msgpack, to_builtins

from inference_engine.contract.codes import BROADER, Code
from inference_engine.contract.events import Refused
from inference_engine.contract.limits import MAX_FRAME_BYTES, MAX_PROMPT_TOKENS
from inference_engine.contract.wire import (
    PROTOCOL_VERSION,
    FrameError,
    decode_engine_frame,
    decode_gateway_frame,
    engine_frame,
)
from stand_ins.golden_frames import TO_ENGINE, golden_bytes


def generate_frame(version: Any = PROTOCOL_VERSION, **changes: Any) -> bytes:
    message = {**to_builtins(TO_ENGINE["generate"]), **changes}
    return msgpack.encode({"version": version, "messages": [message]})


@pytest.mark.parametrize("version", [0, -1, PROTOCOL_VERSION + 2, 2**40])
def test_a_version_not_spoken_here_is_a_version_mismatch(version: int) -> None:
    with pytest.raises(FrameError) as error:
        decode_gateway_frame(generate_frame(version))
    assert error.value.code is Code.VERSION_MISMATCH


def test_a_frame_without_a_version_is_a_version_mismatch() -> None:
    with pytest.raises(FrameError) as error:
        decode_engine_frame(msgpack.encode({"messages": []}))
    assert error.value.code is Code.VERSION_MISMATCH


@pytest.mark.parametrize("version", [PROTOCOL_VERSION, PROTOCOL_VERSION + 1])
def test_this_version_and_the_next_are_understood(version: int) -> None:
    assert decode_gateway_frame(generate_frame(version)).messages == [TO_ENGINE["generate"]]


def test_a_frame_over_the_limit_is_refused_by_its_size_alone() -> None:
    with pytest.raises(FrameError, match="at most") as error:
        decode_gateway_frame(b"\xc1" * (MAX_FRAME_BYTES + 1))
    assert error.value.code is Code.INVALID_FRAME


def test_the_longest_prompt_fits_a_frame() -> None:
    data = generate_frame(prompt_ids=[151_000] * MAX_PROMPT_TOKENS)
    assert len(data) < MAX_FRAME_BYTES
    assert len(decode_gateway_frame(data).messages) == 1


def test_a_refusal_by_a_code_that_an_older_gateway_may_not_know_is_told_by_a_broader_one() -> None:
    """An unknown value of `code` would make the frame unreadable, and end the session for everybody on it."""
    (refused,) = decode_engine_frame(golden_bytes("engine_refused")).messages
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason) == (Code.QUEUE_FULL, Code.TENANT_QUEUE_FULL)
    assert not BROADER.keys() & set(BROADER.values())


@pytest.mark.parametrize("exact", ["", "a_code_of_a_later_version"])
def test_without_an_exact_code_known_here_the_broader_one_is_the_reason(exact: str) -> None:
    message = {"type": "refused", "request_id": "r", "code": "queue_full", "exact_code": exact}
    frame = decode_engine_frame(msgpack.encode({"version": 1, "messages": [message]}))
    (refused,) = frame.messages
    assert isinstance(refused, Refused) and refused.reason is Code.QUEUE_FULL


@pytest.mark.parametrize("name", ["gateway_generate", "gateway_set_tenant_shares", "gateway_ping"])
def test_a_frame_cut_anywhere_is_refused(name: str) -> None:
    whole = golden_bytes(name)
    for length in range(len(whole)):
        with pytest.raises(FrameError):
            decode_gateway_frame(whole[:length])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"{}",
        msgpack.encode([1, 2]),
        msgpack.encode({"version": "1"}),
        msgpack.encode({"version": 1, "messages": {}}),
        msgpack.encode({"version": 1, "messages": [{"type": "no such type"}]}),
        msgpack.encode({"version": 1, "messages": [{"request_id": "no type"}]}),
        b"\x81" * 100_000,
        engine_frame([], step=1, has_work=False) + b"\x00",
    ],
)
def test_malformed_bytes_are_frame_errors_in_both_directions(data: bytes) -> None:
    for decode in (decode_gateway_frame, decode_engine_frame):
        with pytest.raises(FrameError):
            decode(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": ""},
        {"request_id": "x" * 129},
        {"request_id": 7},
        {"attempt": -1},
        {"prompt_ids": []},
        {"prompt_ids": [-1]},
        {"prompt_ids": [1.5]},
        {"output_ids": None},
        {"weight": 0},
        {"deadline_ms": 0},
        {"service_class": "royal"},
        {"tenant_id": ""},
        {"constraint": {"kind": "spell"}},
        {"sampling": {"max_tokens": 1}},
        {"sampling": {"seed": 2**63, "max_tokens": 1}},
        {"sampling": {"seed": 1, "max_tokens": 0}},
        {"sampling": {"seed": 1, "max_tokens": 1, "temperature": 2.5}},
        {"sampling": {"seed": 1, "max_tokens": 1, "temperature": float("nan")}},
        {"sampling": {"seed": 1, "max_tokens": 1, "top_p": 1.5}},
        {"sampling": {"seed": 1, "max_tokens": 1, "logprobs": 21}},
        {"sampling": {"seed": 1, "max_tokens": 1, "stop_token_ids": [1] * 129}},
    ],
)
def test_values_out_of_range_are_frame_errors(changes: dict[str, Any]) -> None:
    with pytest.raises(FrameError) as error:
        decode_gateway_frame(generate_frame(**changes))
    assert error.value.code is Code.INVALID_FRAME
