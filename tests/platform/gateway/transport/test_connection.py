"""Work lasts as long as its client; idle streams get pings; readers who don't read are left."""

import asyncio

import pytest

from gateway.runs.chunks import PING
from gateway.transport.connection import while_connected
from gateway.transport.event_stream import MAX_BLOCKED_TICKS, EventStream
from gateway.transport.exchange import ClientGone
from inference_engine.contract.codes import Code
from polling import until
from tenants.errors import Denied

TICK_S = 0.02


async def test_work_runs_to_its_end(client) -> None:
    done = []

    async def work() -> None:
        done.append(True)

    await while_connected(client().exchange(), work())
    assert done == [True]


async def test_what_work_raises_is_raised(client) -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await while_connected(client().exchange(), work())


async def test_a_client_that_leaves_has_the_work_cancelled_and_cleaned_up(client) -> None:
    asked, seen = client(), []

    async def work() -> None:
        try:
            seen.append("started")
            await asyncio.Event().wait()
        except asyncio.CancelledError as told:
            seen.extend(told.args)
            raise
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    running = asyncio.create_task(while_connected(asked.exchange(), work()))
    await until(lambda: seen == ["started"])
    asked.leaves()
    with pytest.raises(ClientGone):
        await asyncio.wait_for(running, 5)
    assert seen == ["started", Code.CLIENT_GONE, "cleaned up"]


async def test_cancelling_from_outside_cancels_the_work(client) -> None:
    """A server that stops does so, and no client has gone."""
    seen = []

    async def work() -> None:
        seen.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as told:
            seen.extend(told.args)
            raise
        finally:
            seen.append("cleaned up")

    running = asyncio.create_task(while_connected(client().exchange(), work()))
    await until(lambda: seen == ["started"])
    running.cancel("by the server")
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["started", Code.DRAINING, "cleaned up"]


async def test_an_idle_stream_is_pinged(client) -> None:
    asked = client()
    exchange, enough = asked.exchange(), asyncio.Event()

    async def work() -> None:
        stream = EventStream(exchange)
        await stream.start()
        await enough.wait()
        await stream.send(b"data: x\n\n")
        await stream.end(b"data: [DONE]\n\n")

    running = asyncio.create_task(while_connected(exchange, work(), tick_s=TICK_S))
    await until(lambda: asked.body.count(PING) >= 3)
    enough.set()
    await asyncio.wait_for(running, 5)
    assert asked.body.endswith(b"data: x\n\ndata: [DONE]\n\n")
    assert asked.sent[-1].get("more_body", False) is False


async def test_a_reader_who_does_not_read_is_left(client) -> None:
    asked = client()
    exchange, ended = asked.exchange(), []

    async def work() -> None:
        stream = EventStream(exchange)
        await stream.start()
        asked.stops_reading()
        try:
            await stream.send(b"data: x\n\n")
        finally:
            ended.append(True)

    with pytest.raises(ClientGone):
        await asyncio.wait_for(while_connected(exchange, work(), tick_s=TICK_S), 5 + MAX_BLOCKED_TICKS)
    assert ended == [True]


async def test_a_ping_that_can_not_be_sent_counts_as_blocked(client) -> None:
    asked = client()
    exchange = asked.exchange()

    async def work() -> None:
        await EventStream(exchange).start()
        asked.stops_reading()
        await asyncio.Event().wait()

    with pytest.raises(ClientGone):
        await asyncio.wait_for(while_connected(exchange, work(), tick_s=TICK_S), 5 + MAX_BLOCKED_TICKS)


async def test_denials_pass_through(client) -> None:
    from inference_engine.contract.codes import Code

    async def work() -> None:
        raise Denied(Code.QUEUE_FULL, "Full.")

    with pytest.raises(Denied):
        await while_connected(client().exchange(), work())
