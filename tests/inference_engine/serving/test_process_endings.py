"""How the process ends: signals, its drain deadline, a broken runner; and who hears of it."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

from redis.asyncio import Redis

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Refused
from inference_engine.contract.limits import SILENCE_LIMIT_S
from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    decode_record,
    record_key,
)
from inference_engine.contract.requests import Drain
from polling import until
from stand_ins.engine_process import EngineProcess, engine_process
from stand_ins.loop_under_test import generate


async def record(redis: Redis, replica_id: str) -> ReplicaRecord | None:
    data = await redis.get(record_key(replica_id))
    return None if data is None else decode_record(data)


UNHURRIED = ["--fake-step-ms", "100"]
"""Five hundred tokens take longer than any test waits for anything."""
UNHURRIED_UNTIL_TOLD = """
import os, runpy, time
from pathlib import Path
from inference_engine.simulation.fake_runner import FakeRunner
original, told = FakeRunner.run, Path(os.environ["TOLD"])
def run(self, plan):
    if not told.exists():
        time.sleep(0.1)
    return original(self, plan)
FakeRunner.run = run
runpy.run_module("inference_engine", run_name="__main__")
"""


async def test_sigterm_drains_the_running_ones_finish_and_new_ones_are_refused(
    arguments: list[str], address: str, redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    options = ["--redis-url", redis_url, "--replica-id", "drained"]
    told = tmp_path / "told"
    held = {"script": UNHURRIED_UNTIL_TOLD, "TOLD": str(told)}
    async with (
        engine_process(*arguments, *options, address=address, **held) as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(generate("r", max_tokens=200))
        await gateway.wait_for(lambda: gateway.tokens("r"))
        engine.send_signal(signal.SIGTERM)
        await engine.wait_event("draining")
        await until(lambda: is_in_state(redis, "drained", ReplicaState.DRAINING))
        await gateway.send(generate("s"))
        await gateway.wait_ended("s")
        refused = gateway.ending("s")
        assert isinstance(refused, Refused) and refused.code is Code.DRAINING
        told.touch()
        await gateway.wait_ended("r")
        assert len(gateway.tokens("r")) == 200
        assert await engine.wait_exit() == 0
        await gateway.wait_for(lambda: gateway.has_ended)
        assert await record(redis, "drained") is None
        assert not await redis.sismember(REPLICA_SET_KEY, "drained")


async def is_in_state(redis: Redis, replica_id: str, state: ReplicaState) -> bool:
    found = await record(redis, replica_id)
    return found is not None and found.state is state


async def test_a_second_sigterm_ends_at_once_and_orphans_are_written_down(
    arguments: list[str], address: str, redis: Redis, redis_url: str
) -> None:
    await redis.hset("octavo:{b:1}:reservation:x", "tenant", "alice")
    async with (
        engine_process(*arguments, *UNHURRIED, "--redis-url", redis_url, address=address) as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(generate("r", max_tokens=500, reservation_key="octavo:{b:1}:reservation:x"))
        await gateway.wait_for(lambda: len(gateway.tokens("r")) >= 3)
        engine.send_signal(signal.SIGTERM)
        await engine.wait_event("draining")
        engine.send_signal(signal.SIGTERM)
        assert await engine.wait_exit() == 0
        await gateway.wait_for(lambda: gateway.has_ended)
        fields = await redis.hgetall("octavo:{b:1}:reservation:x")
        assert fields[b"tenant"] == b"alice"
        attempt, prompt, _, output, group = fields[b"engine_usage:r"].split()
        assert (attempt, prompt, group) == (b"0", b"4", b"r")
        assert len(gateway.tokens("r")) <= int(output) < 500


async def test_the_drain_deadline_ends_streams_that_are_not_done(arguments: list[str], address: str) -> None:
    async with engine_process(*arguments, *UNHURRIED, address=address) as engine, engine.gateway() as gateway:
        await gateway.send(generate("r", max_tokens=500))
        await gateway.wait_for(lambda: gateway.tokens("r"))
        await gateway.send(Drain(deadline_ms=100))
        assert await engine.wait_exit() == 0
        await gateway.wait_for(lambda: gateway.has_ended)
        assert gateway.ending("r") is None


async def test_a_drain_waits_for_a_gateway_that_reads_late(arguments: list[str], address: str) -> None:
    async with (
        engine_process(*arguments, "--fake-step-ms", "0", address=address) as engine,
        engine.gateway(reads=False) as gateway,
        engine.gateway() as other,
    ):
        await gateway.send(generate("r", max_tokens=500, logprobs=20))  # more than a stream holds unread
        await other.wait_for(lambda: other.stats.num_finished == 1)
        engine.send_signal(signal.SIGTERM)
        await engine.wait_event("draining")
        assert not await changes_within(engine.lines, 2.5)
        gateway.start_reading()
        await gateway.wait_ended("r")
        assert len(gateway.tokens("r")) == 500
        assert await engine.wait_exit() == 0


async def test_a_killed_engine_closes_its_streams_and_its_record_runs_out(
    arguments: list[str], address: str, redis: Redis, redis_url: str
) -> None:
    options = [*UNHURRIED, "--redis-url", redis_url, "--replica-id", "killed"]
    async with (
        engine_process(*arguments, *options, address=address) as engine,
        engine.gateway() as gateway,
    ):
        await until(lambda: is_in_state(redis, "killed", ReplicaState.READY))
        await gateway.send(generate("r", max_tokens=500))
        await gateway.wait_for(lambda: gateway.tokens("r"))
        engine.send_signal(signal.SIGKILL)
        await gateway.wait_for(lambda: gateway.has_ended)
        assert gateway.error is not None
        await until(lambda: is_gone(redis, "killed"), ceiling_s=30)


async def is_gone(redis: Redis, replica_id: str) -> bool:
    return await record(redis, replica_id) is None


async def test_a_stopped_engine_sends_no_frames_and_goes_on_when_it_continues(
    arguments: list[str], address: str
) -> None:
    async with engine_process(*arguments, address=address) as engine, engine.gateway() as gateway:
        await gateway.send(generate("r", max_tokens=100))
        await gateway.wait_for(lambda: gateway.tokens("r"))
        engine.send_signal(signal.SIGSTOP)
        await until(lambda: is_stopped(engine))
        await asyncio.wait((asyncio.create_task(settled(gateway.frames)),), timeout=5)
        num_frames = len(gateway.frames)
        assert not await changes_within(gateway.frames, 1.5 * SILENCE_LIMIT_S)
        assert len(gateway.frames) == num_frames and not gateway.has_ended
        engine.send_signal(signal.SIGCONT)
        await gateway.wait_ended("r")
        assert len(gateway.tokens("r")) == 100


def is_stopped(engine: EngineProcess) -> bool:
    return Path(f"/proc/{engine.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def changes_within(frames: Sequence[object], seconds: float) -> bool:
    before = len(frames)
    try:
        await until(lambda: len(frames) != before, ceiling_s=seconds)
    except AssertionError:
        return False
    return True


async def settled(frames: list[object]) -> None:
    """What was on its way has arrived."""
    while await changes_within(frames, 0.2):
        pass


BREAKS_AFTER_A_TOKEN = """
import runpy, sys
from inference_engine.simulation.fake_runner import FakeRunner
original = FakeRunner.run
def run(self, plan):
    if plan.step > 3:
        raise RuntimeError("the device is gone")
    return original(self, plan)
FakeRunner.run = run
runpy.run_module("inference_engine", run_name="__main__")
"""


async def test_a_runner_that_stays_broken_ends_the_process_with_a_code_of_its_own(
    arguments: list[str], address: str
) -> None:
    async with (
        engine_process(*arguments, address=address, script=BREAKS_AFTER_A_TOKEN) as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(generate("r"))
        await gateway.wait_ended("r")
        await gateway.send(generate("s"))
        await gateway.wait_ended("s")
        for request_id in ("r", "s"):
            ending = gateway.ending(request_id)
            assert ending is not None and ending.code is Code.INTERNAL_ERROR
        assert await engine.wait_exit() == 70
        assert "loop_died" in engine.events()


HANGS = """
import runpy, threading
from inference_engine.simulation.fake_runner import FakeRunner
FakeRunner.run = lambda self, plan: threading.Event().wait()
runpy.run_module("inference_engine", run_name="__main__")
"""


async def test_a_step_that_never_ends_ends_the_process(arguments: list[str], address: str) -> None:
    async with (
        engine_process(*arguments, "--stall-s", "1", address=address, script=HANGS) as engine,
        engine.gateway() as gateway,
    ):
        await gateway.send(generate("r"))
        assert await engine.wait_exit() == 70
        assert "loop_stalled" in engine.events()
        await gateway.wait_for(lambda: gateway.has_ended)


PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "inference_engine", *sys.argv[1:], "--die-with-parent"])
child.wait()
"""


async def test_it_ends_with_its_parent_when_told_to(arguments: list[str], address: str) -> None:
    async with (
        engine_process(*arguments, address=address, script=PARENT) as parent,
        parent.gateway() as gateway,
    ):
        await gateway.wait_for(lambda: gateway.frames)
        parent.send_signal(signal.SIGKILL)
        await gateway.wait_for(lambda: gateway.has_ended)
