"""The fleet against engines on real sockets and a registry in a real Redis."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from fleet.failures import EngineLost, SlowReader
from fleet.fleet import Fleet
from fleet.generation import MAX_PENDING_TOKENS
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Finished, Refused, Stats
from inference_engine.contract.registry import REPLICA_SET_KEY, ReplicaState, record_key
from inference_engine.contract.requests import Abort, Describe, Generate
from polling import until
from servers_of_tests import RedisServer
from stand_ins.scripted_engine import ScriptedEngine, description
from tenants.errors import Denied


async def listed(fleet: Fleet, engine: ScriptedEngine, redis: "Redis[Any]") -> None:
    await engine.publish(redis)
    await until(fleet.is_ready)


async def test_a_listed_engine_is_described_and_routed_to(fleet, engine, redis) -> None:
    assert not fleet.is_ready()
    await listed(fleet, engine, redis)
    assert fleet.models() == {"scripted": engine.described}
    assert fleet.describe("scripted") == engine.described
    assert fleet.route("scripted").record.replica_id == "scripted-0"


async def test_a_generation_is_accepted_then_deltas_then_finished(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    events = [event async for event in fleet.route("scripted").generate(generate(max_tokens=5))]
    assert type(events[0]) is Accepted
    assert [id for event in events if type(event) is Delta for id in event.token_ids] == [
        100,
        101,
        102,
        103,
        104,
    ]
    assert type(events[-1]) is Finished and events[-1].reason is FinishReason.LENGTH


async def test_an_unknown_model_is_told_from_one_without_an_engine(fleet, engine, redis) -> None:
    with pytest.raises(Denied) as empty:
        fleet.describe("scripted")
    assert empty.value.code is Code.NO_READY_REPLICA
    await listed(fleet, engine, redis)
    with pytest.raises(Denied) as unknown:
        fleet.route("gpt-5")
    assert (unknown.value.code, unknown.value.param) == (Code.MODEL_NOT_FOUND, "model")
    fleet.models()
    await engine.stop()
    await until(lambda: not fleet.is_ready())
    with pytest.raises(Denied) as absent:
        fleet.route("scripted")
    assert absent.value.code is Code.NO_READY_REPLICA


async def test_messages_of_one_tick_travel_in_one_frame(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    frames = engine.num_frames
    session = fleet.route("scripted")
    generations = [session.generate(generate(f"r{i}")) for i in range(50)]
    for generation in generations:
        assert type(await generation.__anext__()) is Accepted
    assert len(engine.got(Generate)) == 50
    assert engine.num_frames == frames + 1


async def test_abort_reaches_the_engine_once_and_ends_the_iterator(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=10_000))
    await generation.__anext__()
    generation.abort()
    generation.abort()
    assert [event async for event in generation] == []
    last = await asyncio.wait_for(generation.last_word(), 5)
    assert last is not None and last.reason is FinishReason.ABORTED
    generation.abort()
    assert len(engine.got(Abort)) == 1
    assert fleet.route("scripted").num_open == 0


async def test_a_refusal_is_the_only_event(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    engine.refuse_with = Code.QUEUE_FULL
    events = [event async for event in fleet.route("scripted").generate(generate())]
    assert [(type(event), event.code) for event in events] == [(Refused, Code.QUEUE_FULL)]


async def test_a_slow_reader_gets_its_request_aborted_and_never_a_gap(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    engine.tokens_per_step = 50
    generation = fleet.route("scripted").generate(generate(max_tokens=100_000))
    await until(lambda: engine.got(Abort))
    with pytest.raises(SlowReader):
        async for _ in generation:
            pass
    last = await asyncio.wait_for(generation.last_word(), 5)
    assert last is not None and last.usage.output_tokens > MAX_PENDING_TOKENS


async def test_deltas_that_wait_are_joined_in_order(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=200))
    assert await asyncio.wait_for(generation.last_word(), 10)
    events = [event async for event in generation]
    assert [type(event) for event in events] == [Accepted, Delta, Finished]
    assert events[1].token_ids == [100 + position for position in range(200)]


async def test_events_of_another_attempt_are_dropped(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    engine.attempt_shift = -1
    session = fleet.route("scripted")
    late = session.generate(generate("late", attempt=2))
    await until(lambda: engine.got(Generate))
    engine_steps = engine.step
    await until(lambda: engine.step > engine_steps + 20)
    engine.attempt_shift = 0
    fresh = [event async for event in session.generate(generate("fresh", attempt=2))]
    assert type(fresh[-1]) is Finished
    assert not late.is_over
    assert late._events == type(late._events)()


async def test_silence_is_the_loss_of_the_engine(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=100_000))
    await generation.__anext__()
    engine.silent = True
    with pytest.raises(EngineLost) as lost:
        async for _ in generation:
            pass
    assert "silent" in lost.value.reason
    assert not fleet.is_ready()
    assert await generation.last_word() is None
    engine.silent = False
    await until(fleet.is_ready)


async def test_a_step_counter_that_stands_still_with_work_is_a_loss(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=100_000))
    await generation.__anext__()
    engine.stuck = True
    with pytest.raises(EngineLost) as lost:
        async for _ in generation:
            pass
    assert "no step" in lost.value.reason


async def test_an_idle_engine_may_stand_still(fleet, engine, redis) -> None:
    await listed(fleet, engine, redis)
    session = fleet.route("scripted")
    engine.stuck = True
    await asyncio.wait({asyncio.create_task(session.wait_lost())}, timeout=1.5)
    assert session.loss is None


async def test_a_closed_stream_fails_what_is_open_and_service_resumes(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=100_000))
    await generation.__anext__()
    await engine.stop()
    with pytest.raises(EngineLost):
        async for _ in generation:
            pass
    await engine.start()
    await engine.publish(redis)
    await until(fleet.is_ready)
    assert [type(event) async for event in fleet.route("scripted").generate(generate())][-1] is Finished


async def test_another_boot_id_is_another_process(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    old = fleet.route("scripted")
    generation = old.generate(generate(max_tokens=100_000))
    engine.boot_id = "boot-2"
    await engine.publish(redis)
    assert "another process" in await asyncio.wait_for(old.wait_lost(), 5)
    with pytest.raises(EngineLost):
        async for _ in generation:
            pass
    await until(fleet.is_ready)
    assert fleet.route("scripted").record.boot_id == "boot-2"


async def test_a_draining_engine_gets_nothing_new_but_finishes(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    generation = fleet.route("scripted").generate(generate(max_tokens=50))
    await generation.__anext__()
    await engine.publish(redis, state=ReplicaState.DRAINING)
    await until(lambda: not fleet.is_ready())
    assert [type(event) async for event in generation][-1] is Finished


async def test_the_least_loaded_engine_is_chosen(fleet, engine, redis, socket_folder: Path, generate) -> None:
    other = ScriptedEngine(socket_folder, replica_id="scripted-1", stats=Stats(num_running=3))
    await other.start()
    try:
        await other.publish(redis)
        await engine.publish(redis)
        await until(lambda: sum(replica.is_ready for replica in fleet.replicas()) == 2)
        await until(lambda: {s.load for r in fleet.replicas() if (s := r.session)} == {0, 3})
        assert {fleet.route("scripted").record.replica_id for _ in range(5)} == {"scripted-0"}
        other.stats = Stats()
        await until(lambda: {s.load for r in fleet.replicas() if (s := r.session)} == {0})
        assert len({fleet.route("scripted").record.replica_id for _ in range(2)}) == 2
    finally:
        await other.stop()


async def test_requests_just_sent_count_before_it_reports_them(fleet, engine, redis, generate) -> None:
    await listed(fleet, engine, redis)
    session = fleet.route("scripted")
    load = session.load
    session.generate(generate())
    assert session.load == load + 1


async def test_an_engine_leaves_when_its_record_expires_and_its_session_ends(fleet, engine, redis) -> None:
    await listed(fleet, engine, redis)
    await engine.withdraw()
    await redis.delete(record_key(engine.replica_id))
    await until(lambda: not fleet.replicas()[0].is_listed)
    assert fleet.is_ready()
    assert await redis.scard(REPLICA_SET_KEY) == 0
    await engine.stop()
    await until(lambda: not fleet.replicas())


async def test_losing_the_registry_is_not_losing_the_session(
    engine: ScriptedEngine, redis_server: RedisServer, generate
) -> None:
    own = Redis.from_url(redis_server.url)
    fleet = Fleet(own, poll_interval_s=0.02)
    await engine.publish(own)
    await fleet.start()
    await until(fleet.is_ready)
    generation = fleet.route("scripted").generate(generate(max_tokens=60))
    await engine.withdraw()
    redis_server.kill()
    await until(lambda: not fleet._can_see_registry)
    assert [type(event) async for event in generation][-1] is Finished
    assert fleet.is_ready()
    redis_server.start()
    await until(lambda: fleet._can_see_registry)
    assert fleet.is_ready()
    await fleet.stop()
    await own.aclose()


async def test_an_unreadable_record_hides_nobody_else(fleet, engine, redis) -> None:
    await redis.sadd(REPLICA_SET_KEY, "broken")
    await redis.set(record_key("broken"), b"\xc1 not msgpack")
    await listed(fleet, engine, redis)
    assert [replica.record.replica_id for replica in fleet.replicas()] == ["scripted-0"]


async def test_two_models_are_two_routes(fleet, engine, redis, socket_folder: Path) -> None:
    other = ScriptedEngine(socket_folder, replica_id="other", described=description(model="other"))
    await other.start()
    try:
        await other.publish(redis)
        await engine.publish(redis)
        await until(lambda: len(fleet.models()) == 2)
        assert fleet.route("other").record.replica_id == "other"
        assert fleet.route("scripted").record.replica_id == "scripted-0"
    finally:
        await other.stop()


async def test_an_engine_that_is_starting_is_taken_up_as_soon_as_it_is_ready(
    fleet: Fleet, redis: "Redis[Any]", socket_folder: Path
) -> None:
    engine = ScriptedEngine(socket_folder)
    await engine.publish(redis)
    await engine.withdraw()  # it died, and its record lives on for a moment
    await until(lambda: fleet.replicas())
    engine.boot_id = "boot-2"
    await engine.publish(redis, state=ReplicaState.STARTING)
    replica = fleet.replicas()[0]
    await until(lambda: replica.record.boot_id == "boot-2" and replica._task.done())
    await engine.start()
    try:
        await engine.publish(redis)
        await until(fleet.is_ready)
    finally:
        await engine.stop()


async def test_the_record_of_a_dead_process_is_no_reason_to_dial_its_successor(
    fleet: Fleet, engine: ScriptedEngine, redis: "Redis[Any]"
) -> None:
    """The new process already listens at the old address, under a boot id that nobody has read yet."""
    await listed(fleet, engine, redis)
    await engine.stop()
    await until(lambda: not fleet.is_ready())
    await engine.start()
    described = len(engine.got(Describe))
    looks = await num_looks(redis)
    await until(lambda: has_looked(redis, looks + 50))
    assert len(engine.got(Describe)) == described
    engine.boot_id = "boot-2"
    await engine.publish(redis)
    await until(fleet.is_ready)
    assert fleet.route("scripted").record.boot_id == "boot-2"


async def num_looks(redis: "Redis[Any]") -> int:
    """How often the registry was read."""
    return int((await redis.info("commandstats"))["cmdstat_smembers"]["calls"])


async def has_looked(redis: "Redis[Any]", times: int) -> bool:
    return await num_looks(redis) >= times
