"""Cases 20 and 21: whoever goes away is out of the engine at once, in every phase."""

import asyncio
import json
import socket
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from http_service import Service
from servers_of_tests import wait_until

MOST_TOKENS = 1800
"""Of an answer that was given up: the engine would have made more, a hundred a second, had nobody told it."""


def raw_request(service: Service, path: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.key}\r\n"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def address(service: Service) -> tuple[str, int]:
    parts = urlsplit(service.base_url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


def last_row(service: Service, after: int) -> dict[str, object]:
    """The newest ledger row beyond id `after`, waited for."""
    wait_until(lambda: count_rows(service, after) > 0, "a ledger row")
    [row] = rows_after(service, after, "*")
    return row


def rows_after(service: Service, after: int, what: str) -> list[dict[str, object]]:
    """Of the same tenant: another's earlier row may be written later."""
    assert service.stack is not None
    with closing(sqlite3.connect(service.stack.home / "db.sqlite3", timeout=20)) as database:
        database.row_factory = sqlite3.Row
        of_tenant = "tenant_id = (SELECT tenant_id FROM usage_ledgerentry WHERE id = ?)"
        query = f"SELECT {what} FROM usage_ledgerentry WHERE id > ? AND {of_tenant}"
        return [dict(row) for row in database.execute(query, [after, after])]


def newest_id(service: Service) -> int:
    """Of the tenant's ledger, once all that ended before is in it."""
    assert service.stack is not None
    settled = service.post("/v1/completions", service.completion_body(max_tokens=1))
    return int(service.ledger_row(settled.headers["x-request-id"])["id"])


def test_case_20_the_stream_is_closed_after_three_chunks(fake_service: Service) -> None:
    service, before = fake_service, newest_id(fake_service)
    aborted = service.settled_stats().num_aborted
    body = service.chat_body(stream=True, max_tokens=4000, ignore_eos=True)
    with service.opened("/v1/chat/completions", body) as (stream, events):
        for _ in range(4):
            next(events)
    row = last_row(service, before)
    assert (row["ending"], row["code"]) == ("aborted", "client_gone")
    assert row["prompt_tokens"] > 20
    assert len(stream.deltas()) <= row["output_tokens"] < MOST_TOKENS
    assert service.settled_stats().num_aborted == aborted + 1


@pytest.mark.parametrize("stream", [False, True])
def test_case_20_the_socket_is_closed_before_the_first_token(fake_service: Service, stream: bool) -> None:
    service, before = fake_service, newest_id(fake_service)
    prompt = [1000 + i % 1000 for i in range(6000)]
    body = service.completion_body([prompt], stream=stream, max_tokens=2000, ignore_eos=True)
    accepted = service.settled_stats().num_accepted
    with socket.create_connection(address(service)) as connection:
        connection.sendall(raw_request(service, "/v1/completions", body))
        wait_until(lambda: service.engine_stats().num_accepted > accepted, "accepted")
    row = last_row(service, before)
    assert (row["ending"], row["code"], row["prompt_tokens"]) == ("aborted", "client_gone", 6000)
    assert row["output_tokens"] < MOST_TOKENS


def test_case_20_an_answer_that_is_not_streamed(fake_service: Service) -> None:
    service, before = fake_service, newest_id(fake_service)
    produced = service.settled_stats().output_tokens
    body = service.chat_body(max_tokens=4000, ignore_eos=True)
    with socket.create_connection(address(service)) as connection:
        connection.sendall(raw_request(service, "/v1/chat/completions", body))
        wait_until(lambda: service.engine_stats().output_tokens > produced + 20, "decoding")
    row = last_row(service, before)
    assert (row["ending"], row["code"]) == ("aborted", "client_gone")
    assert 20 <= sum_of(service, before, "output_tokens + overrun_tokens") < MOST_TOKENS


def test_rows_and_overrun_are_what_the_engine_made(fake_service: Service) -> None:
    """A stop string, a whole answer and a client that left: nothing is lost between the two counts."""
    service, before = fake_service, newest_id(fake_service)
    produced = service.settled_stats().output_tokens
    text = service.complete("abc", seed=3, max_tokens=60, ignore_eos=True)["choices"][0]["text"]
    service.complete("abc", seed=3, max_tokens=60, ignore_eos=True, stop=[text[30:33]])
    body = service.chat_body(stream=True, max_tokens=4000, ignore_eos=True)
    with service.opened("/v1/chat/completions", body) as (_, events):
        for _ in range(10):
            next(events)
    wait_until(lambda: count_rows(service, before) == 3, "three rows")
    billed = sum_of(service, before, "output_tokens + overrun_tokens")
    assert service.settled_stats().output_tokens - produced == billed
    assert sum_of(service, before, "overrun_tokens") < MOST_TOKENS


def count_rows(service: Service, after: int) -> int:
    return sum_of(service, after, "1")


def sum_of(service: Service, after: int, what: str) -> int:
    [row] = rows_after(service, after, f"COALESCE(SUM({what}), 0) AS sum")
    return int(str(row["sum"]))


@pytest.mark.timeout(240)
async def test_case_21_a_hundred_streams_are_cancelled_at_once_twenty_times(fake_service: Service) -> None:
    """In all phases: 64 run, the others wait, and a long prompt is always being prefilled."""
    service = fake_service
    before, aborted = newest_id(service), service.settled_stats().num_aborted
    host, port = address(service)
    for turn in range(20):
        await asyncio.gather(*(_start_and_leave(service, host, port, number, turn) for number in range(100)))
    wait_until(lambda: count_rows(service, before) == 2000, "2000 rows", 60)
    assert sum_of(service, before, "ending = 'aborted'") == 2000
    assert service.settled_stats().num_aborted > aborted + 1000


async def _start_and_leave(service: Service, host: str, port: int, number: int, turn: int) -> None:
    prompt = [1000 + (number * 31 + turn + i) % 5000 for i in range(8 if number % 10 else 3000)]
    body = service.completion_body([prompt], stream=True, max_tokens=3000, ignore_eos=True)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(raw_request(service, "/v1/completions", body))
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    await asyncio.sleep(number % 50 / 1000)
    writer.close()
