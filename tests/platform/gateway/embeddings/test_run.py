"""All inputs of one request: some at a time, all or nothing."""

import asyncio
import struct
from typing import Any

import pytest

from fleet.session import EngineSession, SessionOptions
from gateway.embeddings.order import EmbeddingOrder
from gateway.embeddings.run import EmbeddingRun
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Embedding
from inference_engine.contract.requests import Abort, Generate
from polling import until
from stand_ins.admitted import Admitted
from stand_ins.scripted_engine import ScriptedEngine
from tenants.errors import Denied
from usage.models import Ending


async def vectors_of(
    engine: ScriptedEngine, admission: Admitted, firsts: list[int]
) -> list[tuple[float, ...]]:
    """Of texts with these first tokens, each one token longer than the one before."""
    session = EngineSession(engine.record(), SessionOptions())
    await session.open()
    order = EmbeddingOrder(
        model="m",
        inputs=[[first, *range(number)] for number, first in enumerate(firsts)],
        embedding=Embedding(size=2),
        dimensions=None,
        is_base64=False,
        service_tier=None,
        user="",
    )
    route: Any = session
    given: Any = admission
    try:
        async with EmbeddingRun(order, given, route) as run:
            return [struct.unpack("<2f", vector) for vector in await run.vectors()]
    finally:
        await session.close("over")


async def test_vectors_come_in_the_order_of_the_inputs(engine: ScriptedEngine) -> None:
    admission, firsts = Admitted(queue_timeout_s=20.0), [900 - number for number in range(100)]
    found = await vectors_of(engine, admission, firsts)
    assert found == [(first, number + 1) for number, first in enumerate(firsts)]
    assert admission.endings == [(Ending.FINISHED, None)]
    assert admission.recorded["prompt_tokens"] == sum(range(1, 101))
    assert "output_tokens" not in admission.recorded
    assert 1 < engine.most_live <= engine.described.max_running
    messages = [message for message in engine.got(Generate) if isinstance(message, Generate)]
    assert all(message.embeds for message in messages)
    assert len({message.request_id for message in messages}) == 100
    assert not engine.got(Abort)


async def test_a_full_queue_is_waited_for_while_some_of_it_are_its_own(engine: ScriptedEngine) -> None:
    engine.max_live = 3
    found = await vectors_of(engine, Admitted(queue_timeout_s=20.0), list(range(40)))
    assert [first for first, _ in found] == list(range(40))
    assert engine.most_live == 3


async def test_a_queue_full_of_others_is_a_refusal(engine: ScriptedEngine) -> None:
    engine.max_live = 0
    admission = Admitted(queue_timeout_s=20.0)
    with pytest.raises(Denied) as refused:
        await vectors_of(engine, admission, [1, 2, 3])
    assert refused.value.code is Code.QUEUE_FULL
    assert admission.endings[0] == (Ending.FAILED, Code.QUEUE_FULL)
    assert "prompt_tokens" not in admission.recorded


async def test_one_that_fails_ends_all(engine: ScriptedEngine) -> None:
    engine.broken_text, engine.max_live, engine.step_s = 7, 100, 0.02
    admission = Admitted(queue_timeout_s=20.0)
    with pytest.raises(Denied) as failed:
        await vectors_of(engine, admission, [*range(2000)])
    assert failed.value.code is Code.NON_FINITE_LOGITS
    assert admission.endings[0] == (Ending.FAILED, Code.NON_FINITE_LOGITS)
    assert len(engine.got(Generate)) < 2000


async def test_what_no_engine_begins_with_is_given_up_and_aborted(engine: ScriptedEngine) -> None:
    engine.tokens_per_step = 0
    admission = Admitted(queue_timeout_s=0.1)
    with pytest.raises(Denied) as given_up:
        await vectors_of(engine, admission, [1, 2])
    assert given_up.value.code is Code.QUEUE_TIMEOUT
    assert admission.endings == [(Ending.ABORTED, Code.QUEUE_TIMEOUT)]
    await until(lambda: len(engine.got(Abort)) == 2)


async def test_texts_count_that_were_taken_when_nobody_was_left_to_hear_it(engine: ScriptedEngine) -> None:
    engine.tokens_per_step = 0
    admission = Admitted(queue_timeout_s=20.0)
    asked = asyncio.create_task(vectors_of(engine, admission, [1, 2]))
    await until(lambda: len(engine.got(Generate)) == 2)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert admission.recorded["prompt_tokens"] == 3
