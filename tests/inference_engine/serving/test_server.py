"""Sessions over a real gRPC stream: frames, liveness, endings, slow readers, unreadable frames."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec import msgpack, to_builtins

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Description, Finished, Pong, Refused, Stats
from inference_engine.contract.limits import FRAME_INTERVAL_S, MAX_FRAME_BYTES
from inference_engine.contract.requests import Abort, Describe, Drain, Ping
from inference_engine.contract.wire import gateway_frame
from inference_engine.simulation.fake_runner import FakeSpeed
from polling import until
from stand_ins.engine_server import DESCRIPTION, EngineServer, engine_server
from stand_ins.loop_under_test import StepGate, fake_runner, generate


async def wait_empty(engine: EngineServer) -> None:
    """No session, no work, no block held."""
    under_test = engine.under_test
    await until(lambda: engine.server.num_sessions == 0)
    await until(lambda: not under_test.loop.progress().has_work)
    assert under_test.blocks_in_use() == 0


async def test_a_request_is_accepted_streamed_and_finished(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        await gateway.send(Describe(), generate("r", max_tokens=20), Ping(nonce=5))
        await gateway.wait_ended("r")
        finished = gateway.ending("r")
        assert isinstance(finished, Finished) and finished.usage.output_tokens == 20
        assert len(gateway.tokens("r")) == 20
        assert gateway.messages(Description) == [DESCRIPTION]
        assert [pong.nonce for pong in gateway.messages(Pong)] == [5]
        assert [frame.step for frame in gateway.frames] == sorted(frame.step for frame in gateway.frames)


async def test_an_idle_session_gets_frames_with_stats_and_no_work(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        loop = engine.under_test.loop
        await gateway.wait_for(lambda: gateway.frames and not loop.progress().has_work)
        first = len(gateway.frames)
        await gateway.wait_for(lambda: len(gateway.frames) >= first + 6)
        later = gateway.frames[first + 1 :]
        assert all(frame.messages == [loop.progress().stats] for frame in later)
        assert not any(frame.has_work for frame in later)
        waited = gateway.frame_times[first + 5] - gateway.frame_times[first]
        assert waited / 5 < 4 * FRAME_INTERVAL_S


async def test_a_stalled_loop_keeps_its_frames_but_not_its_steps(tmp_path: Path) -> None:
    gate = StepGate(fake_runner())
    async with engine_server(tmp_path, gate) as engine, engine.gateway() as gateway:
        await gateway.send(generate("r"))
        gate.grant(2)
        await gateway.wait_for(lambda: len(gateway.tokens("r")) == 2)
        await gateway.wait_for(lambda: gate.num_begun == 3)
        seen = len(gateway.frames)
        await gateway.wait_for(lambda: len(gateway.frames) >= seen + 4)
        assert {(frame.step, frame.has_work) for frame in gateway.frames[seen:]} == {(2, True)}
        gate.open()
        await gateway.wait_ended("r")
        await gateway.wait_for(lambda: not gateway.frames[-1].has_work)
        assert gateway.frames[-1].step == 8


async def test_stats_come_with_a_busy_session_too(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        await gateway.send(generate("r", max_tokens=400))
        await gateway.wait_ended("r")
        await gateway.wait_for(lambda: gateway.stats.output_tokens == 400)
        assert gateway.stats.num_finished == 1


@pytest.mark.parametrize("goodbye", ["cancel", "half-close"])
async def test_the_end_of_the_stream_aborts_within_two_steps_and_frees_the_blocks(
    tmp_path: Path, goodbye: str
) -> None:
    gate = StepGate(fake_runner())
    async with engine_server(tmp_path, gate) as engine:
        gateway = engine.gateway()
        async with gateway:
            await gateway.send(*(generate(f"r{i}", prompt=40, max_tokens=100) for i in range(4)))
            gate.grant(3)
            await gateway.wait_for(lambda: len(gateway.tokens("r0")) >= 1)
            await until(lambda: gate.num_begun == 4)
            if goodbye == "half-close":
                await gateway.call.done_writing()
                await gateway.wait_for(lambda: gateway.has_ended)
        await until(lambda: engine.server.num_sessions == 0)
        gate.grant(2)
        await wait_empty(engine)
        assert gate.num_begun <= 5
        assert engine.under_test.loop.progress().stats.num_aborted == 4


async def test_an_abort_over_the_wire_is_answered_with_the_usage(tmp_path: Path) -> None:
    gate = StepGate(fake_runner())
    async with engine_server(tmp_path, gate) as engine, engine.gateway() as gateway:
        await gateway.send(generate("r", max_tokens=100))
        gate.grant(2)
        await gateway.wait_for(lambda: len(gateway.tokens("r")) == 2 and gate.num_begun == 3)
        await gateway.send(Abort(request_id="r"))
        await until(lambda: len(engine.under_test.loop.inbox) == 1)
        gate.open()
        await gateway.wait_ended("r")
        finished = gateway.ending("r")
        assert isinstance(finished, Finished)
        assert (finished.reason, finished.code) == (FinishReason.ABORTED, Code.CLIENT_GONE)
        assert finished.usage.output_tokens == len(gateway.tokens("r")) == 3


async def test_drain_is_passed_on_with_its_deadline(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        await gateway.send(Drain(deadline_ms=1500))
        await until(lambda: engine.drains == [1.5])


def encoded(**changes: Any) -> bytes:
    message = {**to_builtins(generate("bad")), **changes}
    good = to_builtins(generate("good", max_tokens=3))
    return msgpack.encode({"version": 1, "messages": [message, good]})


@pytest.mark.parametrize(
    "changes",
    [{"sampling": {"seed": 2**63, "max_tokens": 1}}, {"prompt_ids": [-1]}, {"tenant_id": "x" * 500}],
)
async def test_one_unreadable_request_is_refused_and_the_session_lives(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        await gateway.send_bytes(encoded(**changes))
        await gateway.wait_ended("bad", "good")
        refused = gateway.ending("bad")
        assert isinstance(refused, Refused) and refused.code is Code.INVALID_REQUEST
        assert len(gateway.tokens("good")) == 3
        await gateway.wait_for(lambda: gateway.stats.num_refused == 1)


async def test_messages_of_a_newer_version_are_skipped(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as gateway:
        newer = {"type": "levitate", "height": 3}
        good = to_builtins(generate("good", max_tokens=3))
        await gateway.send_bytes(msgpack.encode({"version": 2, "messages": [newer, good]}))
        await gateway.wait_ended("good")
        assert not gateway.has_ended


@pytest.mark.parametrize(
    ("data", "code", "status"),
    [
        (b"\xc1", Code.INVALID_FRAME, grpc.StatusCode.INVALID_ARGUMENT),
        (msgpack.encode({"version": 1, "messages": 7}), Code.INVALID_FRAME, grpc.StatusCode.INVALID_ARGUMENT),
        (msgpack.encode({"version": 9}), Code.VERSION_MISMATCH, grpc.StatusCode.FAILED_PRECONDITION),
        (
            msgpack.encode({"version": 9, "messages": [{"type": "new"}]}),
            Code.VERSION_MISMATCH,
            grpc.StatusCode.FAILED_PRECONDITION,
        ),
    ],
)
async def test_an_unreadable_frame_ends_its_session_with_a_last_word_and_no_other(
    tmp_path: Path, data: bytes, code: Code, status: grpc.StatusCode
) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as other, engine.gateway() as gateway:
        await other.send(generate("o", max_tokens=300))
        await gateway.send_bytes(gateway_frame(generate("r", max_tokens=400)))
        await gateway.wait_for(lambda: gateway.messages(Accepted))
        await gateway.send_bytes(data)
        await gateway.wait_for(lambda: gateway.has_ended)
        assert gateway.error is not None and gateway.error.code() is status
        last = gateway.messages(Refused)[-1]
        assert (last.request_id, last.code) == ("", code)
        await other.wait_ended("o")
        assert len(other.tokens("o")) == 300


async def test_an_oversized_frame_ends_its_session_and_no_other(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine, engine.gateway() as other, engine.gateway() as gateway:
        await gateway.send_bytes(b"\x00" * (MAX_FRAME_BYTES + 5000))
        await gateway.wait_for(lambda: gateway.has_ended)
        assert gateway.error is not None
        assert gateway.error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await other.send(generate("o"))
        await other.wait_ended("o")


async def test_a_gateway_that_does_not_read_loses_its_requests_and_the_loop_goes_on(tmp_path: Path) -> None:
    runner = fake_runner(512, speed=FakeSpeed(step_ms=0.5))
    async with (
        engine_server(tmp_path, runner, num_blocks=512, settings={"outbox_frames": 300}) as engine,
        engine.gateway() as other,
        engine.gateway(reads=False) as slow,
    ):
        ids = [f"r{i}" for i in range(12)]
        await slow.send(*(generate(each, max_tokens=500, logprobs=20, ignore_eos=True) for each in ids))
        await until(lambda: engine.under_test.loop.progress().stats.num_aborted == len(ids))
        await other.send(generate("o", max_tokens=300))
        await other.wait_ended("o")
        assert len(other.tokens("o")) == 300
        slow.start_reading()
        await slow.wait_ended(*ids)
        for each in ids:
            finished = slow.ending(each)
            assert isinstance(finished, Finished)
            assert (finished.reason, finished.code) == (FinishReason.FAILED, Code.SLOW_READER)
            assert len(slow.tokens(each)) == finished.usage.output_tokens < 500
        await slow.send(generate("again", max_tokens=5))
        await slow.wait_ended("again")
        assert len(slow.tokens("again")) == 5


async def test_a_hundred_streams_cancelled_in_every_phase_leave_nothing_behind(tmp_path: Path) -> None:
    """CASES 21 over the wire: each round is one gateway that goes away in the middle of everything."""
    runner = fake_runner(256, speed=FakeSpeed(step_ms=2))  # the hundred need half a second at least
    config = {"num_blocks": 256, "max_running": 24, "prefill_budget": 64}
    async with engine_server(tmp_path, runner, **config) as engine, engine.gateway() as survivor:
        for round_number in range(5):
            await survivor.send(generate(f"s{round_number}", max_tokens=40))
            async with engine.gateway() as gateway:
                await gateway.send(
                    *(generate(f"r{round_number}.{i}", prompt=5 + 3 * i, max_tokens=100) for i in range(100))
                )
                await gateway.wait_for(lambda n=round_number: len(gateway.messages(Accepted)) > 20 * n)
            await survivor.wait_ended(f"s{round_number}")
            assert len(survivor.tokens(f"s{round_number}")) == 40
            await until(lambda: engine.server.num_sessions == 1)
            await until(lambda: not engine.under_test.loop.progress().has_work)
            assert engine.under_test.blocks_in_use() == 0
        stats = engine.under_test.loop.progress().stats
        assert stats.num_aborted > 100
        assert stats.num_accepted == stats.num_aborted + stats.num_finished


async def test_many_sessions_at_once_each_get_their_own(tmp_path: Path) -> None:
    async with engine_server(tmp_path) as engine:
        gateways = [engine.gateway() for _ in range(8)]
        for number, gateway in enumerate(gateways):
            await gateway.__aenter__()
            await gateway.send(generate(f"r{number}", seed=number, max_tokens=30))
        await asyncio.gather(*(gateway.wait_ended(f"r{n}") for n, gateway in enumerate(gateways)))
        for number, gateway in enumerate(gateways):
            assert len(gateway.tokens(f"r{number}")) == 30
            assert all(accepted.request_id == f"r{number}" for accepted in gateway.messages(Accepted))
            await gateway.close()
        assert len({tuple(gateway.tokens(f"r{n}")) for n, gateway in enumerate(gateways)}) == 8
        await wait_empty(engine)


async def test_the_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    async with engine_server(folder) as engine, engine.gateway() as gateway:
        await gateway.wait_for(lambda: gateway.messages(Stats))
        assert stat.S_IMODE(os.stat(folder / "e.sock").st_mode) == 0o600
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
