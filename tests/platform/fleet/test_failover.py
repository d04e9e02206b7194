"""A request whose engine is lost goes on at an equal one, and nowhere else."""

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from fleet.failover import Route
from fleet.failures import EngineLost
from fleet.fleet import Fleet
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Accepted, Delta, Finished, Refused
from inference_engine.contract.requests import Generate
from polling import until
from stand_ins.scripted_engine import ScriptedEngine, description

MakeGenerate = Callable[..., Generate]


MAX_TOKENS = 60
HELD_AFTER = 5
ALL = [100 + position for position in range(MAX_TOKENS)]


@pytest.fixture
async def engines(
    redis: "Redis[Any]", fleet: Fleet, socket_folder: Path
) -> AsyncIterator[list[ScriptedEngine]]:
    """Three that the fleet knows; only the first two are equal. All but the second stop half way."""
    made = [ScriptedEngine(socket_folder, replica_id=name) for name in ("a", "b")]
    made.append(ScriptedEngine(socket_folder, "c", described=description(fingerprint="another")))
    made[0].hold_after = made[2].hold_after = HELD_AFTER
    for engine in made:
        await engine.start()
        await engine.publish(redis)
    await until(lambda: len(fleet.sessions()) == len(made))
    yield made
    for engine in made:
        await engine.stop()


def route_to(fleet: Fleet, replica_id: str) -> Route:
    return Route(fleet, next(one for one in fleet.sessions() if one.record.replica_id == replica_id))


async def tokens_through_a_loss(route: Route, message: Generate, lose: Callable[[], Any]) -> list[int]:
    """`lose` is called after three tokens."""
    tokens: list[int] = []
    num_accepted, has_lost = 0, False
    async for event in route.generate(message):
        num_accepted += type(event) is Accepted
        if type(event) is Delta:
            tokens += event.token_ids
        if len(tokens) >= 3 and not has_lost:
            has_lost = True
            result = lose()
            if inspect.isawaitable(result):
                await result
    assert num_accepted == 1
    return tokens


async def test_an_equal_engine_goes_on_where_the_first_broke_off(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    route, moved = route_to(fleet, "a"), []
    route.on_move = moved.append
    tokens = await tokens_through_a_loss(route, generate(max_tokens=MAX_TOKENS), engines[0].stop)
    assert (tokens, moved) == (ALL, ["b"])
    (taken,) = engines[1].got(Generate)
    assert isinstance(taken, Generate)
    assert (taken.attempt, taken.output_ids) == (1, ALL[: len(taken.output_ids)])
    assert len(taken.output_ids) >= 3
    assert engines[2].got(Generate) == []


async def test_an_engine_that_falls_silent_is_replaced_and_not_heard_again(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    def fall_silent() -> None:
        engines[0].silent = True

    tokens = await tokens_through_a_loss(route_to(fleet, "a"), generate(max_tokens=MAX_TOKENS), fall_silent)
    assert tokens == ALL


async def test_without_an_equal_engine_the_loss_is_told(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    with pytest.raises(EngineLost):
        await tokens_through_a_loss(route_to(fleet, "c"), generate(max_tokens=MAX_TOKENS), engines[2].stop)
    assert engines[0].got(Generate) == engines[1].got(Generate) == []


async def test_an_engine_too_small_for_the_request_is_not_asked(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    message = generate(max_tokens=MAX_TOKENS, prompt_ids=[1] * 150)
    with pytest.raises(EngineLost):
        await tokens_through_a_loss(route_to(fleet, "a"), message, engines[0].stop)


async def test_a_refusal_of_the_next_engine_is_a_loss_to_the_client(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    engines[1].refuse_with = Code.QUEUE_FULL
    with pytest.raises(EngineLost):
        await tokens_through_a_loss(route_to(fleet, "a"), generate(max_tokens=MAX_TOKENS), engines[0].stop)
    assert len(engines[1].got(Generate)) == 1


async def test_a_draining_engine_passes_the_request_on_and_other_refusals_stand(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    engines[0].refuse_with = Code.DRAINING
    events = [event async for event in route_to(fleet, "a").generate(generate(max_tokens=5))]
    assert type(events[0]) is Accepted and type(events[-1]) is Finished
    for code in (Code.QUEUE_FULL, Code.TENANT_QUEUE_FULL):
        engines[0].refuse_with = code
        (refused,) = [event async for event in route_to(fleet, "a").generate(generate(f"by {code}"))]
        assert isinstance(refused, Refused) and refused.reason is code
    engines[2].refuse_with = Code.DRAINING
    (refused,) = [event async for event in route_to(fleet, "c").generate(generate("r3"))]
    assert isinstance(refused, Refused) and refused.code is Code.DRAINING


async def test_what_was_aborted_does_not_move(
    fleet: Fleet, engines: list[ScriptedEngine], generate: MakeGenerate
) -> None:
    generation = route_to(fleet, "a").generate(generate(max_tokens=MAX_TOKENS))
    await anext(generation)
    generation.abort()
    await engines[0].stop()
    await until(lambda: len(fleet.sessions()) == len(engines) - 1)
    assert [event async for event in generation] == []
    assert engines[1].got(Generate) == []
