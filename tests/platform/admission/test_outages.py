"""The door while Redis hangs, is away, comes back, or comes back having forgotten."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from admission.facts import RequestFacts
from admission.gate import gate
from admission.settlement import finish_settlements, settler
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from api_keys.services import revoke_key
from inference_engine.contract.codes import Code
from servers_of_tests import RedisServer
from tenants.errors import Denied
from usage.models import Ending

InThread = Callable[..., Awaitable[Any]]
Facts = Callable[..., RequestFacts]
Rows = Callable[[], list[dict[str, str]]]
KeyAndSecret = tuple[ApiKey, str]


async def run_through(header: str, facts: RequestFacts) -> None:
    async with gate(await authenticate(header), facts) as admission:
        admission.record(prompt_tokens=7, output_tokens=2)
        admission.finish(Ending.FINISHED)


async def lose_everything(server: RedisServer) -> None:
    """Redis comes back as a new run that knows nothing; killed, it may not have written that to its file."""

    def lose() -> None:
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        server.stop()
        server.start()

    await asyncio.to_thread(lose)


@pytest.fixture
def header(server: RedisServer, key_and_secret: KeyAndSecret) -> str:
    return f"Bearer {key_and_secret[1]}"


async def test_without_redis_nothing_is_admitted(server: RedisServer, header: str, facts: Facts) -> None:
    await run_through(header, facts("a"))
    await finish_settlements()
    server.kill()
    with pytest.raises(Denied) as caught:
        await run_through(header, facts("b"))
    assert caught.value.code is Code.STORE_UNAVAILABLE
    await asyncio.to_thread(server.start)
    await run_through(header, facts("c"))


async def test_a_cancelled_handler_never_waits_and_its_row_arrives_when_redis_does(
    server: RedisServer, header: str, facts: Facts, server_rows: Rows
) -> None:
    inside = asyncio.Event()

    async def handle() -> None:
        async with gate(await authenticate(header), facts("a")) as admission:
            admission.record(prompt_tokens=7, output_tokens=3)
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(handle())
    await asyncio.wait_for(inside.wait(), 10)
    server.kill()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)  # there is no Redis yet to settle with
    await asyncio.to_thread(server.start)
    await finish_settlements(30)
    (row,) = server_rows()
    assert (row["ending"], row["output_tokens"]) == ("aborted", "3")


async def test_a_client_that_leaves_while_redis_hangs_was_never_admitted(
    server: RedisServer, header: str, facts: Facts, server_rows: Rows, settings: object
) -> None:
    """Redis gives it a place all the same, which is given back; calls are carried out in their order."""
    settings.OCTAVO_REDIS_TIMEOUT_SECONDS = 10.0  # type: ignore[attr-defined]
    await run_through(header, facts("before"))
    await finish_settlements()
    server.pause()
    task = asyncio.create_task(run_through(header, facts("gone")))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.resume()
    await run_through(header, facts("after"))
    await finish_settlements(20)
    assert {row["request_id"] for row in server_rows()} == {"before", "after"}
    with redis.Redis.from_url(server.url) as client:
        names = ("leases:*", "open", "reservation:*")
        assert not [key for name in names for key in client.scan_iter(f"octavo:{{b:*}}:{name}")]


async def test_a_key_revoked_while_redis_was_away_is_refused_when_it_is_back(
    server: RedisServer, header: str, key_and_secret: KeyAndSecret, facts: Facts, in_thread: InThread
) -> None:
    """Redis comes back with the old epoch in its file; only its being another run tells."""
    await run_through(header, facts("a"))
    await finish_settlements()
    await asyncio.to_thread(server.stop)
    await in_thread(revoke_key, key_and_secret[0])
    await asyncio.to_thread(server.start)
    with redis.Redis.from_url(server.url) as client:
        assert b"1" in [client.get(name) for name in client.scan_iter("octavo:*:epoch:*")]
    with pytest.raises(Denied) as caught:
        await run_through(header, facts("b"))
    assert caught.value.code is Code.INVALID_API_KEY
    await finish_settlements()
    with redis.Redis.from_url(server.url) as client:
        assert not list(client.scan_iter("octavo:{b:*}:leases:*"))


async def test_what_redis_forgot_is_sent_again(
    server: RedisServer, header: str, facts: Facts, server_rows: Rows
) -> None:
    for name in ("a", "b"):
        await run_through(header, facts(name))
    await finish_settlements()
    assert len(server_rows()) == 2
    await lose_everything(server)
    assert server_rows() == []
    await run_through(header, facts("c"))
    await asyncio.sleep(0)  # the new run was noticed by c; what follows from it is under way
    await finish_settlements()
    assert sorted(row["request_id"] for row in server_rows()) == ["a", "b", "c"]
    assert all(row["tenant_name"] == "Acme" and row["output_tokens"] == "2" for row in server_rows())


async def test_an_open_request_whose_reservation_was_forgotten_still_leaves_its_row(
    server: RedisServer, header: str, facts: Facts, server_rows: Rows
) -> None:
    async with gate(await authenticate(header), facts("a")) as admission:
        await lose_everything(server)
        admission.record(output_tokens=9)
        admission.finish(Ending.FINISHED)
    await finish_settlements()
    assert [(row["request_id"], row["output_tokens"]) for row in server_rows()] == [("a", "9")]


async def test_settlements_of_long_ago_are_not_kept(server: RedisServer, header: str, facts: Facts) -> None:
    await run_through(header, facts("a"))
    await finish_settlements()
    (kept,) = settler()._recent
    assert kept.keys.request_id == "a"
