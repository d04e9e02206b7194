"""Both directions of every message against bytes that were written once and kept."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from msgspec import Struct, structs

from inference_engine.contract.codes import FinishReason
from inference_engine.contract.events import EngineMessage, Finished, StepObserved, Timeline, Usage
from inference_engine.contract.registry import decode_record, encode_record
from inference_engine.contract.requests import GatewayMessage
from inference_engine.contract.wire import (
    EngineFrame,
    decode_engine_frame,
    decode_gateway_frame,
    engine_frame,
    gateway_frame,
)
from stand_ins.golden_frames import FROM_ENGINE, GOLDEN, RECORD, TO_ENGINE, golden_bytes


def test_every_message_of_the_contract_has_a_golden_frame() -> None:
    assert {type(message) for message in TO_ENGINE.values()} == set(get_args(GatewayMessage))
    assert {type(message) for message in FROM_ENGINE.values()} == set(get_args(EngineMessage))
    names = {f"gateway_{name}" for name in TO_ENGINE} | {f"engine_{name}" for name in FROM_ENGINE}
    special = {"gateway_from_newer", "engine_from_older", "replica_record"}
    assert {path.stem for path in GOLDEN.glob("*.hex")} == names | special


@pytest.mark.parametrize("name", TO_ENGINE)
def test_gateway_message_is_read_and_written_as_the_golden_bytes(name: str) -> None:
    frame = decode_gateway_frame(golden_bytes(f"gateway_{name}"))
    assert (frame.version, frame.messages) == (1, [TO_ENGINE[name]])
    assert gateway_frame(TO_ENGINE[name]) == golden_bytes(f"gateway_{name}")


@pytest.mark.parametrize("name", FROM_ENGINE)
def test_engine_message_is_read_and_written_as_the_golden_bytes(name: str) -> None:
    frame = decode_engine_frame(golden_bytes(f"engine_{name}"))
    assert frame == EngineFrame(version=1, step=9, has_work=True, messages=[FROM_ENGINE[name]])
    assert engine_frame([FROM_ENGINE[name]], step=9, has_work=True) == golden_bytes(f"engine_{name}")


def test_replica_record_is_read_and_written_as_the_golden_bytes() -> None:
    assert decode_record(golden_bytes("replica_record")) == RECORD
    assert encode_record(RECORD) == golden_bytes("replica_record")


def test_examples_differ_from_every_default_so_that_no_field_is_left_out_of_the_bytes() -> None:
    """An omitted field would keep its bytes out of the golden file, and a renamed one would go unnoticed."""
    for struct in structs_within([*TO_ENGINE.values(), *FROM_ENGINE.values(), RECORD]):
        for field in structs.fields(struct):
            assert getattr(struct, field.name) != field.default, (type(struct).__name__, field.name)


def structs_within(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        value = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        value = list(value.values())
    for each in value if isinstance(value, list | tuple) else []:
        yield from structs_within(each)


def test_unknown_fields_of_a_newer_gateway_are_ignored() -> None:
    frame = decode_gateway_frame(golden_bytes("gateway_from_newer"))
    assert (frame.version, frame.messages) == (2, [TO_ENGINE["generate"]])


def test_absent_optional_fields_of_an_older_engine_take_their_defaults() -> None:
    frame = decode_engine_frame(golden_bytes("engine_from_older"))
    usage = Usage(prompt_tokens=6, output_tokens=3)
    expected = Finished(request_id="req-1", reason=FinishReason.LENGTH, usage=usage)
    assert frame.messages == [expected]
    assert (expected.attempt, expected.timeline, frame.has_work) == (0, Timeline(), False)


def test_fields_at_their_defaults_take_no_bytes() -> None:
    """What makes an added optional field invisible to an older peer until somebody sets it."""
    usage = Usage(prompt_tokens=6, output_tokens=3)
    plain = Finished(request_id="r", reason=FinishReason.LENGTH, usage=usage)
    observed = StepObserved(step=1, rows=[])
    assert engine_frame([plain], step=1, has_work=False).count(b"timeline") == 0
    assert b"blocks_by_tenant" not in engine_frame([observed], step=1, has_work=False)
