"""Reading frames leniently: one bad message among good ones."""

from typing import Any

import pytest
from msgspec import msgpack, to_builtins

from inference_engine.contract.codes import Code
from inference_engine.contract.limits import MAX_FRAME_BYTES
from inference_engine.contract.requests import Abort, Ping
from inference_engine.contract.wire import FrameError, gateway_frame
from inference_engine.serving.frames import read_frame
from stand_ins.loop_under_test import generate

GOOD = to_builtins(Ping(nonce=1))


def frame(*messages: Any, version: int = 1) -> bytes:
    return msgpack.encode({"version": version, "messages": list(messages)})


def test_a_good_frame_is_read_as_it_is() -> None:
    messages = [generate("r"), Abort(request_id="r")]
    read = read_frame(gateway_frame(*messages))
    assert (read.messages, read.refused) == (messages, [])


def test_a_bad_generate_is_refused_by_its_id_and_the_rest_is_read() -> None:
    bad = {**to_builtins(generate("bad", attempt=3)), "weight": -1.0}
    read = read_frame(frame(bad, GOOD))
    assert read.messages == [Ping(nonce=1)]
    assert [(each.request_id, each.attempt, each.code) for each in read.refused] == [
        ("bad", 3, Code.INVALID_REQUEST)
    ]
    assert "weight" in read.refused[0].message


@pytest.mark.parametrize("bad", [{"type": "levitate"}, {"type": "abort"}, {"type": "observe", "every": -1}])
def test_other_messages_that_make_no_sense_are_skipped(bad: dict[str, Any]) -> None:
    read = read_frame(frame(bad, GOOD))
    assert (read.messages, read.refused) == ([Ping(nonce=1)], [])


@pytest.mark.parametrize("bad", [7, None, {}, {"type": 3}, {"type": "generate", "request_id": 5}, [1]])
def test_a_message_without_a_heading_spoils_its_frame(bad: Any) -> None:
    with pytest.raises(FrameError) as error:
        read_frame(frame(GOOD, bad))
    assert error.value.code is Code.INVALID_FRAME


def test_neither_size_nor_version_is_waived_for_a_frame_that_is_read_leniently() -> None:
    with pytest.raises(FrameError) as error:
        read_frame(frame({"type": "levitate"}, version=9))
    assert error.value.code is Code.VERSION_MISMATCH
    with pytest.raises(FrameError, match="at most"):
        read_frame(frame({"type": "levitate", "ballast": b"\0" * MAX_FRAME_BYTES}))
