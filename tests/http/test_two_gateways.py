"""What must hold over several gateway processes: revocation, limits, and whose prefix is whose."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from http_service import Service, checked_error
from octavo_stack import Stack
from revoking import revoke
from servers_of_tests import free_port, wait_until

FAKE_ENGINE = ("--fake", "--fake-step-ms", "10", "--num-blocks", "2048", "--max-running", "4")
SECOND = "gateway-2"


@pytest.fixture(scope="module")
def pair(redis_binary: Path, smollm2_dir: Path) -> Iterator[tuple[Stack, list[str]]]:
    """One installation and the addresses of its two gateways; its engine runs four requests at once."""
    with Stack.opened(redis_binary, smollm2_dir) as stack:
        stack.environment["OCTAVO_LEASE_SECONDS"] = "5"
        stack.prepare()
        stack.start_engine(*FAKE_ENGINE)
        stack.start_ledger_writer()
        stack.start_gateway()
        second = free_port()
        stack.start_another_gateway(SECOND, second)
        urls = [stack.base_url, f"http://127.0.0.1:{second}"]
        wait_until(lambda: all(is_ready(url) for url in urls), f"both ready ({stack.logs()})", 120)
        yield stack, urls


def is_ready(url: str) -> bool:
    try:
        return httpx.get(url + "/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def clients(pair: tuple[Stack, list[str]], name: str) -> list[Service]:
    """One tenant's, at each gateway."""
    stack, urls = pair
    return [Service(url, stack.keys[name], stack.model, stack) for url in urls]


def test_case_28_a_revoked_key_is_refused_at_both_and_its_open_stream_ends(
    pair: tuple[Stack, list[str]],
) -> None:
    first, second = clients(pair, "charlie")
    for service in (first, second):
        assert service.complete(max_tokens=1)["usage"]["completion_tokens"] == 1
    body = second.chat_body(stream=True, max_tokens=4000, ignore_eos=True)
    ended_at: list[float] = []
    with second.opened("/v1/chat/completions", body) as (stream, events):
        next(events)

        def read() -> None:
            for _ in events:
                pass
            ended_at.append(time.monotonic())

        reading = threading.Thread(target=read)
        reading.start()
        revoked_at = revoke(pair[0], first.key)
        for service in (first, second):
            refused = service.post("/v1/completions", service.completion_body())
            assert (refused.status_code, checked_error(refused)["code"]) == (401, "invalid_api_key")
        reading.join(30)
    assert stream.error is not None and stream.error["code"] == "invalid_api_key"
    assert ended_at[0] - revoked_at < 10.0


def test_two_gateways_share_one_limit_of_requests_at_once(pair: tuple[Stack, list[str]]) -> None:
    services, most = clients(pair, "bob"), 0
    body = services[0].completion_body(max_tokens=30, ignore_eos=True)
    with pair[0].limits_of("bob") as set_limit, ThreadPoolExecutor(40) as threads:
        set_limit("concurrent", 3)
        asked = [threads.submit(services[n % 2].post, "/v1/completions", body) for n in range(40)]
        while not all(one.done() for one in asked):
            most = max(most, services[0].num_leases())
            time.sleep(0.005)
        codes = Counter(one.result().status_code for one in asked)
    assert set(codes) == {200, 429} and codes[200] >= 3
    assert 1 <= most <= 3
    wait_until(services[0].is_idle, "nothing leaked")


def test_two_hundred_at_the_edge_of_the_queue(pair: tuple[Stack, list[str]]) -> None:
    """Four run, five may wait; the engine, once it has heard of it, holds both gateways to it."""
    services, most = clients(pair, "bob"), 0
    body = services[0].completion_body(max_tokens=20, ignore_eos=True)
    probe = services[0].completion_body(max_tokens=1)
    ten_at_once = probe | {"n": 10}

    def is_limited() -> bool:
        return services[0].post("/v1/completions", ten_at_once).status_code == 429

    with pair[0].limits_of("bob") as set_limit, ThreadPoolExecutor(200) as threads:
        set_limit("queued", 5)
        wait_until(is_limited, "the engine knows of the limit")
        wait_until(services[0].is_idle, "nothing else there")
        asked = [threads.submit(services[n % 2].post, "/v1/completions", body) for n in range(200)]
        while not all(one.done() for one in asked):
            most = max(most, services[0].engine_stats().num_waiting)
            time.sleep(0.01)
        answers = [one.result() for one in asked]
    codes = Counter(one.status_code for one in answers)
    assert set(codes) == {200, 429} and codes[200] >= 9
    refused = next(one for one in answers if one.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1 and checked_error(refused)["message"]
    assert most <= 5
    assert services[1].post("/v1/completions", probe).status_code == 200
    wait_until(services[0].is_idle, "nothing leaked")


def test_case_31_a_prefix_is_cached_for_its_tenant_alone(pair: tuple[Stack, list[str]]) -> None:
    alice, bob = clients(pair, "alice")[0], clients(pair, "bob")[1]
    prompt = [1000 + number % 3001 for number in range(2000)]

    def cached(service: Service) -> int:
        usage = service.complete(prompt, max_tokens=2)["usage"]
        assert usage["prompt_tokens"] == 2000
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    assert cached(alice) == 0
    assert cached(alice) >= 1900
    assert cached(bob) == 0


def test_a_gateway_that_is_killed_leaves_its_places_to_the_other(pair: tuple[Stack, list[str]]) -> None:
    """Case 26, over processes: leases expire by themselves."""
    stack, urls = pair
    first, second = clients(pair, "bob")
    body = second.completion_body(stream=True, max_tokens=4000, ignore_eos=True)

    def status() -> int:
        return first.post("/v1/completions", first.completion_body(max_tokens=1)).status_code

    with stack.limits_of("bob") as set_limit:
        set_limit("concurrent", 2)
        with (
            second.opened("/v1/completions", body) as (_, one),
            second.opened("/v1/completions", body) as (_, two),
        ):
            next(one), next(two)
            assert status() == 429
            stack.signal(SECOND, signal.SIGKILL)
        wait_until(lambda: status() == 200, "a place")
    wait_until(first.is_idle, "nothing leaked")
    stack.start_another_gateway(SECOND, int(urls[1].rpartition(":")[2]))
    wait_until(lambda: is_ready(urls[1]), "another gateway in its place")
