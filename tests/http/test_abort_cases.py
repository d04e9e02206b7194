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
    assert service.stack is not None
    rows: list[dict[str, object]] = []

    def has_come() -> bool:
        assert service.stack is not None
        with closing(sqlite3.connect(service.stack.home / "db.sqlite3", timeout=20)) as database:
            database.row_factory = sqlite3.Row
            found = database.execute("SELECT * FROM usage_ledgerentry WHERE id > ? ORDER BY id DESC", [after])
            rows[:] = [dict(row) for row in found]
        return bool(rows)

    wait_until(has_come, "a ledger row", 20)
    assert len(rows) == 1
    return rows[0]


def newest_id(service: Service) -> int:
    """Of the ledger once everything is settled."""
    assert service.stack is not None
    settled = service.post("/v1/completions", service.completion_body(max_tokens=1))
    return int(service.ledger_row(settled.headers["x-request-id"])["id"])


def test_case_20_the_stream_is_closed_after_three_chunks(fake_service: Service) -> None:
    service, before = fake_service, newest_id(fake_service)
    aborted = service.engine_stats().num_aborted
    body = service.chat_body(stream=True, max_tokens=4000, ignore_eos=True)
    with service.opened("/v1/chat/completions", body) as (stream, events):
        for _ in range(4):
            next(events)
    row = last_row(service, before)
    assert (row["ending"], row["code"]) == ("aborted", "client_gone")
    assert row["prompt_tokens"] > 20
    assert len(stream.deltas()) <= row["output_tokens"] < 200
    wait_until(lambda: service.engine_stats().num_aborted == aborted + 1, "the engine counted it", 5)


@pytest.mark.parametrize("stream", [False, True])
def test_case_20_the_socket_is_closed_before_the_first_token(fake_service: Service, stream: bool) -> None:
    service, before = fake_service, newest_id(fake_service)
    prompt = [1000 + i % 1000 for i in range(6000)]
    body = service.completion_body([prompt], stream=stream, max_tokens=1000, ignore_eos=True)
    accepted = service.engine_stats().num_accepted
    with socket.create_connection(address(service)) as connection:
        connection.sendall(raw_request(service, "/v1/completions", body))
        wait_until(lambda: service.engine_stats().num_accepted > accepted, "accepted", 10)
    row = last_row(service, before)
    assert (row["ending"], row["code"], row["prompt_tokens"]) == ("aborted", "client_gone", 6000)
    assert row["output_tokens"] < 200


def test_case_20_an_answer_that_is_not_streamed(fake_service: Service) -> None:
    service, before = fake_service, newest_id(fake_service)
    produced = service.engine_stats().output_tokens
    body = service.chat_body(max_tokens=4000, ignore_eos=True)
    with socket.create_connection(address(service)) as connection:
        connection.sendall(raw_request(service, "/v1/chat/completions", body))
        wait_until(lambda: service.engine_stats().output_tokens > produced + 20, "decoding", 10)
    row = last_row(service, before)
    assert (row["ending"], row["code"]) == ("aborted", "client_gone")
    assert 20 <= row["output_tokens"] < 400


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
    wait_until(lambda: count_rows(service, before) == 3, "three rows", 20)
    billed = sum_of(service, before, "output_tokens + overrun_tokens")
    assert service.settled_stats().output_tokens - produced == billed
    assert sum_of(service, before, "overrun_tokens") < 40


def count_rows(service: Service, after: int) -> int:
    return sum_of(service, after, "1")


def sum_of(service: Service, after: int, what: str) -> int:
    assert service.stack is not None
    with closing(sqlite3.connect(service.stack.home / "db.sqlite3", timeout=20)) as database:
        query = f"SELECT COALESCE(SUM({what}), 0) FROM usage_ledgerentry WHERE id > ?"
        return int(database.execute(query, [after]).fetchone()[0])


@pytest.mark.timeout(240)
async def test_case_21_a_hundred_streams_are_cancelled_at_once_twenty_times(fake_service: Service) -> None:
    """In all phases: 64 run, the others wait, and a long prompt is always being prefilled."""
    service = fake_service
    before, aborted = newest_id(service), service.engine_stats().num_aborted
    host, port = address(service)
    for turn in range(20):
        await asyncio.gather(*(_start_and_leave(service, host, port, number, turn) for number in range(100)))
    wait_until(lambda: count_rows(service, before) == 2000, "2000 rows", 60)
    wait_until(service.is_idle, "idle", 20)
    assert sum_of(service, before, "ending = 'aborted'") == 2000
    assert service.engine_stats().num_aborted > aborted + 1000


async def _start_and_leave(service: Service, host: str, port: int, number: int, turn: int) -> None:
    prompt = [1000 + (number * 31 + turn + i) % 5000 for i in range(8 if number % 10 else 3000)]
    body = service.completion_body([prompt], stream=True, max_tokens=3000, ignore_eos=True)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(raw_request(service, "/v1/completions", body))
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    await asyncio.sleep(number % 50 / 1000)
    writer.close()
