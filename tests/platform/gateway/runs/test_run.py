"""A run that no engine begins with is given up, and says so."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.session import EngineSession, SessionOptions
from gateway.runs import run as run_module
from gateway.runs.ending import queue_timer
from gateway.runs.run import BULK_TOKENS_PER_DELTA, Run, is_unwatched
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Abort, Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from polling import until
from stand_ins.admitted import Admitted
from stand_ins.scripted_engine import ScriptedEngine
from tenants.errors import Denied
from usage.models import Ending


class Text:
    """Every token is a letter."""

    def stream_decoder(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(
            push=lambda ids: SimpleNamespace(text="a" * len(ids), num_tokens=len(ids), stopped=False),
            finish=lambda: SimpleNamespace(text="", stopped=False),
        )


def run_of(session: EngineSession, admission: Admitted, num_candidates: int = 1) -> Run:
    order: Any = SimpleNamespace(
        prompts=[[1, 2, 3]],
        num_candidates=num_candidates,
        max_tokens=20,
        sampling=SamplingParams(seed=1, max_tokens=1),
        stop=(),
        stream=False,
        constraint=None,
        constraint_param="response_format",
        tools=None,
        include_stop=False,
        skip_special_tokens=True,
    )
    return Run(order, admission, session, Text())  # type: ignore[arg-type]


async def run_through(engine: ScriptedEngine, admission: Admitted, num_candidates: int = 1) -> int:
    """The number of tokens that came."""
    session = EngineSession(engine.record(), SessionOptions())
    await session.open()
    came = 0

    async def emit(_: object, piece: Any) -> None:
        nonlocal came
        came += len(piece.token_ids)

    try:
        async with run_of(session, admission, num_candidates) as run:
            await run.accepted()
            await run.pump(emit)
    finally:
        await session.close("over")
    return came


async def test_a_request_that_waits_too_long_is_given_up_and_aborted(engine: ScriptedEngine) -> None:
    engine.tokens_per_step = 0
    admission = Admitted(queue_timeout_s=0.1)
    with pytest.raises(Denied) as caught:
        await run_through(engine, admission)
    assert (caught.value.code, caught.value.retry_after_s) == (Code.QUEUE_TIMEOUT, 1.0)
    assert "0.1 seconds" in caught.value.message
    assert admission.endings == [(Ending.ABORTED, Code.QUEUE_TIMEOUT)]
    await until(lambda: engine.got(Abort))


async def test_once_begun_it_may_take_its_time(
    engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[asyncio.TimerHandle] = []

    def noted(*args: Any) -> asyncio.TimerHandle:
        timers.append(queue_timer(*args))
        return timers[-1]

    monkeypatch.setattr(run_module, "queue_timer", noted)
    engine.hold_after = 5
    admission = Admitted(queue_timeout_s=20.0)
    running = asyncio.create_task(run_through(engine, admission))
    await until(lambda: admission.recorded.get("output_tokens"))
    assert [timer.cancelled() for timer in timers] == [True] and not running.done()
    engine.hold_after = None
    assert await running == 20
    assert admission.endings == [(Ending.FINISHED, None)]
    (message,) = engine.got(Generate)
    assert isinstance(message, Generate) and message.service_class is ServiceClass.BULK
    assert message.tokens_per_delta == BULK_TOKENS_PER_DELTA


async def test_a_prompt_counts_that_was_taken_when_nobody_was_left_to_hear_it(engine: ScriptedEngine) -> None:
    admission = Admitted(queue_timeout_s=20.0)
    session = EngineSession(engine.record(), SessionOptions())
    await session.open()
    try:
        with pytest.raises(asyncio.CancelledError):
            async with run_of(session, admission):
                await until(lambda: engine.got(Generate))
                raise asyncio.CancelledError
    finally:
        await session.close("over")
    assert (admission.recorded["prompt_tokens"], admission.recorded["output_tokens"]) == (3, 0)


async def test_several_choices_are_one_group_and_their_prompt_counts_once(engine: ScriptedEngine) -> None:
    admission = Admitted(queue_timeout_s=20.0)
    admission.max_tokens = 60
    assert await run_through(engine, admission, num_candidates=3) == 60
    messages = [message for message in engine.got(Generate) if isinstance(message, Generate)]
    assert [message.choice for message in messages] == [0, 1, 2]
    assert {message.group_id for message in messages} == {"r1-0"}
    assert len({message.request_id for message in messages}) == 3
    assert len({message.sampling.seed for message in messages}) == 1
    assert (admission.recorded["prompt_tokens"], admission.recorded["output_tokens"]) == (3, 60)


@pytest.mark.parametrize(
    ("service_class", "changes", "expected"),
    [
        (ServiceClass.BULK, {}, True),
        (ServiceClass.INTERACTIVE, {}, False),
        (ServiceClass.STANDARD, {}, False),
        (ServiceClass.BULK, {"stream": True}, False),
        (ServiceClass.BULK, {"stop": ("end",)}, False),
        (ServiceClass.BULK, {"tools": object()}, False),
    ],
)
def test_who_gets_several_tokens_at_once(
    service_class: ServiceClass, changes: dict[str, object], expected: bool
) -> None:
    order: Any = SimpleNamespace(**{"stream": False, "stop": (), "tools": None, **changes})
    assert is_unwatched(order, service_class) is expected
