"""Messages packed into frames."""

from fleet.frames import frames_of, largest_size
from inference_engine.contract.limits import MAX_FRAME_BYTES
from inference_engine.contract.requests import Abort, Constraint, ConstraintKind
from inference_engine.contract.wire import decode_gateway_frame, gateway_frame


def test_a_tick_is_one_frame(generate) -> None:
    messages = [generate("a"), Abort(request_id="a"), generate("b")]
    frames = list(frames_of(messages))
    assert [decode_gateway_frame(frame).messages for frame in frames] == [messages]


def test_long_prompts_are_spread_over_frames_in_order(generate) -> None:
    messages = [generate(f"r{i}", prompt_ids=[49_000] * 1_000_000) for i in range(7)]
    frames = list(frames_of(messages))
    assert len(frames) == 3
    assert all(len(frame) <= MAX_FRAME_BYTES for frame in frames)
    found = [message.request_id for frame in frames for message in decode_gateway_frame(frame).messages]
    assert found == [f"r{i}" for i in range(7)]


def test_the_estimate_is_never_too_small(generate) -> None:
    constraint = Constraint(kind=ConstraintKind.REGEX, source="é" * 10_000)
    message = generate("x" * 128, prompt_ids=[2**32 - 1] * 5000, tenant_id="t" * 128, constraint=constraint)
    assert len(gateway_frame(message)) <= largest_size(message)


def test_nothing_to_send_is_no_frame() -> None:
    assert list(frames_of([])) == []
