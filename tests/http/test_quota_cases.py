"""Limits as clients meet them: status, headers, words; and three books that agree to the token."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest
import redis

from http_service import Service, checked_error
from octavo_stack import SetLimit, Stack
from servers_of_tests import wait_until

TENANT = "bob"


@pytest.fixture
def bob(fake_stack: Stack) -> Iterator[Service]:
    service = Service(fake_stack.base_url, fake_stack.keys[TENANT], fake_stack.model, fake_stack)
    yield service
    service.close()


@pytest.fixture
def charlie(fake_stack: Stack) -> Iterator[Service]:
    service = Service(fake_stack.base_url, fake_stack.keys["charlie"], fake_stack.model, fake_stack)
    yield service
    service.close()


@pytest.fixture
def set_limit(fake_stack: Stack) -> Iterator[SetLimit]:
    with fake_stack.limits_of(TENANT) as run:
        yield run


def budget(stack: Stack) -> dict[str, int]:
    with closing(redis.Redis.from_url(stack.redis.url)) as client:
        (name,) = client.scan_iter(f"octavo:{{b:*}}:budget:tokens_per_day:*:tenant:{tenant_id(stack)}")
        fields: Any = client.hmget(name, "spent", "reserved")
    return dict(zip(("spent", "reserved"), map(int, fields), strict=True))


def tenant_id(stack: Stack) -> int:
    [[found]] = rows(stack, "SELECT id FROM tenants_tenant WHERE slug = ?", TENANT)
    return int(found)


def sums(stack: Stack, table: str) -> tuple[int, int, int]:
    """Prompt, output and overrun tokens of this tenant."""
    columns = ("prompt_tokens", "output_tokens", "overrun_tokens")
    asked = ", ".join(f"COALESCE(SUM({column}), 0)" for column in columns)
    [found] = rows(stack, f"SELECT {asked} FROM {table} WHERE tenant_id = ?", tenant_id(stack))
    return tuple(found)


def rows(stack: Stack, query: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(stack.home / "db.sqlite3", timeout=20)) as database:
        return database.execute(query, values).fetchall()


def books_agree(stack: Stack) -> bool:
    """Is nothing reserved, and what was spent what the rows say? Not while some are on their way."""
    prompt, output, _ = sums(stack, "usage_ledgerentry")
    return budget(stack) == {"spent": prompt + output, "reserved": 0}


def test_headers_of_tokens_and_requests_are_on_every_answer(bob: Service, set_limit: SetLimit) -> None:
    set_limit("tokens_per_minute", 6000, "--burst", "6000")
    set_limit("requests_per_minute", 600)
    whole = bob.post("/v1/completions", bob.completion_body("Hello", max_tokens=5))
    with bob.opened("/v1/completions", bob.completion_body("Hello", max_tokens=5, stream=True)) as (
        stream,
        events,
    ):
        list(events)
    for response in (whole, stream.response):
        assert response.headers["x-ratelimit-limit-tokens"] == "6000"
        assert 5900 < int(response.headers["x-ratelimit-remaining-tokens"]) < 6000
        assert response.headers["x-ratelimit-reset-tokens"].endswith("s")
        assert response.headers["x-ratelimit-limit-requests"] == "600"


def test_what_can_never_fit_is_not_to_be_tried_again(bob: Service, set_limit: SetLimit) -> None:
    set_limit("tokens_per_minute", 100)
    refused = bob.post("/v1/completions", bob.completion_body("Hello", max_tokens=200))
    assert refused.status_code == 429
    error = checked_error(refused)
    assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false" and "retry-after" not in refused.headers
    assert "100 tokens per minute" in error["message"]


def test_a_rate_tells_when_to_come_back(charlie: Service, fake_stack: Stack) -> None:
    """What the first took is given back in 50 seconds. Another tenant's than the other tests': it is gone."""
    with fake_stack.limits_of("charlie") as set_limit:
        set_limit("tokens_per_minute", 100, "--burst", "100")
        body = charlie.completion_body("Hello", max_tokens=90, ignore_eos=True)
        first = charlie.post("/v1/completions", body)
        refused = charlie.post("/v1/completions", body)
    assert first.status_code == 200
    assert refused.status_code == 429
    assert checked_error(refused)["code"] == "rate_limit_exceeded"
    assert refused.headers["x-should-retry"] == "true"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["x-ratelimit-limit-tokens"] == "100"


def test_a_tenant_that_may_have_one_request_waiting_is_refused_by_its_own_code(
    bob: Service, fake_stack: Stack
) -> None:
    """Eight choices come to the engine at once; it hears of a limit a moment after it is set or lifted."""
    answers: list[httpx.Response] = []

    def is_refused() -> bool:
        answers.append(bob.post("/v1/completions", bob.completion_body("Hello", max_tokens=1, n=8)))
        return answers[-1].status_code != 200

    with fake_stack.limits_of(TENANT) as set_limit:
        set_limit("queued", 1)
        wait_until(is_refused, "a full queue")
    answer = answers[-1]
    wait_until(lambda: not is_refused(), "no limit any more")
    assert answer.status_code == 429
    error = checked_error(answer)
    assert (error["type"], error["code"]) == ("rate_limit_error", "tenant_queue_full")
    assert (answer.headers["x-should-retry"], answer.headers["retry-after"]) == ("true", "1")


def test_budget_ledger_sums_and_engine_agree_to_the_token(bob: Service, set_limit: SetLimit) -> None:
    """Finished, stopped, aborted and refused, of one choice and of several; none of it is lost or counted
    twice."""
    set_limit("tokens_per_day", 10**6)
    stack = bob.stack
    assert stack is not None
    bob.complete("Hello", max_tokens=1)
    wait_until(lambda: books_agree(stack), "the first row")
    engine, before = bob.settled_stats(), sums(stack, "usage_ledgerentry")

    def one(number: int) -> None:
        fields = {"max_tokens": 20 + number, "ignore_eos": True, "n": 1 + number % 3}
        body = bob.completion_body(f"Request {number}", **fields)
        if number % 4 == 0:
            with bob.opened("/v1/completions", {**body, "stream": True, "max_tokens": 400}) as (_, events):
                for _ in zip(range(3), events, strict=False):
                    pass
        elif number % 4 == 1:
            bob.post("/v1/completions", {**body, "max_tokens": 10**6, "stop": ["e", "a"]})
        elif number % 4 == 2:
            assert bob.post("/v1/completions", {**body, "prompt": ""}).status_code == 400
        else:
            bob.answer("/v1/completions", body)

    with ThreadPoolExecutor(max_workers=12) as threads:
        list(threads.map(one, range(48)))
    after = bob.settled_stats()
    made = (after.prompt_tokens - engine.prompt_tokens, after.output_tokens - engine.output_tokens)

    def written() -> tuple[int, int]:
        prompt, output, overrun = (
            now - then for now, then in zip(sums(stack, "usage_ledgerentry"), before, strict=True)
        )
        return prompt, output + overrun

    wait_until(lambda: written() == made, f"{made} in the ledger, not {written()}")
    total = sums(stack, "usage_ledgerentry")
    assert sums(stack, "usage_hourlyusage") == sums(stack, "usage_dailyusage") == total
    assert books_agree(stack)
