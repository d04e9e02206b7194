"""Reading a request within limits, and the headers that every answer carries."""

import asyncio

import pytest

from gateway.transport.exchange import ClientGone
from inference_engine.contract.codes import Code
from tenants.errors import Denied


async def test_a_body_in_pieces(client) -> None:
    assert await client().gives(b"ab", b"", b"cd").exchange().read_body(10, 5) == b"abcd"


@pytest.mark.parametrize("announced", [{"content-length": "18"}, {"content-length": "9" * 500}, {}])
async def test_a_body_that_is_too_large_is_dropped_before_it_is_refused(client, announced) -> None:
    """A client that is cut off while it sends may never read why."""
    sender = client(headers=announced).gives(b"x" * 6, b"x" * 6, b"x" * 6)
    with pytest.raises(Denied) as denied:
        await sender.exchange().read_body(10, 5)
    assert denied.value.code is Code.BODY_TOO_LARGE
    assert denied.value.headers["connection"] == "close"
    assert sender.incoming.qsize() == 0


async def test_not_all_of_a_body_without_end_is_dropped(client) -> None:
    sender = client().gives(*[b"x" * 6] * 100)
    with pytest.raises(Denied):
        await sender.exchange().read_body(10, 5)
    assert sender.incoming.qsize() > 50


async def test_a_client_that_expects_to_be_told_first_is_told_first(client) -> None:
    sender = client(headers={"content-length": "11", "expect": "100-continue"}).gives(b"x" * 11)
    with pytest.raises(Denied):
        await sender.exchange().read_body(10, 5)
    assert sender.incoming.qsize() == 1


async def test_a_body_that_never_ends_is_given_up(client) -> None:
    sender = client()
    sender.incoming.put_nowait({"type": "http.request", "body": b"x", "more_body": True})
    with pytest.raises(Denied) as denied:
        await sender.exchange().read_body(10, 0.05)
    assert denied.value.code is Code.REQUEST_TIMEOUT


async def test_a_client_that_leaves_while_sending(client) -> None:
    sender = client()
    sender.incoming.put_nowait({"type": "http.request", "body": b"x", "more_body": True})
    sender.leaves()
    with pytest.raises(ClientGone):
        await sender.exchange().read_body(10, 5)


async def test_waiting_for_the_client_to_leave(client) -> None:
    sender = client().gives(b"x")
    exchange = sender.exchange()
    await exchange.read_body(10, 5)
    waiting = asyncio.create_task(exchange.wait_gone())
    await asyncio.sleep(0)
    assert not waiting.done()
    sender.leaves()
    await asyncio.wait_for(waiting, 5)


async def test_every_answer_is_named_and_timed(client) -> None:
    asked = client(headers={"x-client-request-id": "abc"})
    exchange = asked.exchange()
    exchange.add_headers({"x-ratelimit-limit-requests": "5"})
    await exchange.send_json(200, {"a": 1})
    assert asked.headers["x-request-id"] == exchange.request_id
    assert asked.headers["openai-processing-ms"].isdigit()
    assert asked.headers["x-ratelimit-limit-requests"] == "5"
    assert asked.headers["x-client-request-id"] == "abc"
    assert (asked.body, asked.headers["content-length"]) == (b'{"a":1}', "7")


@pytest.mark.parametrize("value", ["a b", "", "x" * 513, "é", "a\x7f"])
async def test_harmful_client_ids_are_dropped(client, value: str) -> None:
    asked = client(headers={"x-client-request-id": value})
    await asked.exchange().send_json(200, {})
    assert "x-client-request-id" not in asked.headers


async def test_a_head_request_gets_no_body(client) -> None:
    asked = client("HEAD", "/health")
    await asked.exchange().send_json(200, {"a": 1})
    assert (asked.body, asked.headers["content-length"]) == (b"", "7")


async def test_a_denial_tells_when_to_come_back(client) -> None:
    asked = client()
    denied = Denied(Code.RATE_LIMIT_EXCEEDED, "Slow down.", retry_after_s=2.25, headers={"x-a": "b"})
    await asked.exchange().send_error(denied)
    assert asked.status == 429
    assert asked.headers["retry-after"] == "3"
    assert asked.headers["retry-after-ms"] == "2250"
    assert (asked.headers["x-should-retry"], asked.headers["x-a"]) == ("true", "b")
    assert asked.error == {
        "message": "Slow down.",
        "type": "rate_limit_error",
        "param": None,
        "code": "rate_limit_exceeded",
    }
