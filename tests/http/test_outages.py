"""What clients see when Redis is away, when the gateway stops and when a key is revoked."""

import signal
import threading
import time

from http_service import Service, checked_error
from octavo_stack import Stack
from revoking import create_key, revoke
from servers_of_tests import wait_until


def test_a_revoked_key_ends_its_open_stream_and_is_refused(fake_service: Service, fake_stack: Stack) -> None:
    key = create_key(fake_stack, "charlie")
    charlie = Service(fake_stack.base_url, key, fake_stack.model, fake_stack)
    body = charlie.chat_body(stream=True, max_tokens=4000, ignore_eos=True)
    revoked_at: list[float] = []

    def revoke_now() -> None:
        revoked_at.append(revoke(fake_stack, key))

    with charlie.opened("/v1/chat/completions", body) as (stream, events):
        next(events)
        revoking = threading.Thread(target=revoke_now)
        revoking.start()
        for _ in events:
            pass
        ended_at = time.monotonic()
    revoking.join()
    assert stream.error is not None and stream.error["code"] == "invalid_api_key"
    assert not stream.is_done
    assert ended_at - revoked_at[0] < 10.0
    refused = charlie.post("/v1/chat/completions", charlie.chat_body())
    assert (refused.status_code, checked_error(refused)["code"]) == (401, "invalid_api_key")
    row = charlie.ledger_row(stream.response.headers["x-request-id"])
    assert (row["ending"], row["code"]) == ("aborted", "invalid_api_key")
    charlie.close()


def test_without_redis_nothing_is_admitted_and_open_streams_go_on(
    fake_service: Service, fake_stack: Stack
) -> None:
    service = fake_service
    body = service.completion_body(stream=True, max_tokens=300, ignore_eos=True)
    with service.opened("/v1/completions", body) as (stream, events):
        next(events)
        fake_stack.redis.kill()
        try:
            refused = service.post("/v1/chat/completions", service.chat_body())
            assert (refused.status_code, checked_error(refused)["code"]) == (503, "store_unavailable")
            assert int(refused.headers["retry-after"]) >= 1
            assert fake_stack.status("/health") == 200
            for _ in events:
                pass
        finally:
            fake_stack.redis.start()
    assert stream.is_done and stream.finish_reasons() == ["length"]
    wait_until(lambda: service.post("/v1/completions", body).status_code == 200, "served again")
    assert service.ledger_row(stream.response.headers["x-request-id"])["output_tokens"] == 300


def test_a_gateway_that_stops_ends_its_streams_with_an_error_event(
    fake_service: Service, fake_stack: Stack
) -> None:
    service = fake_service
    body = service.chat_body(stream=True, max_tokens=7000, ignore_eos=True)
    with service.opened("/v1/chat/completions", body) as (stream, events):
        next(events)
        fake_stack.signal("gateway", signal.SIGTERM)
        try:
            for _ in events:
                pass
        finally:
            assert fake_stack.processes["gateway"].wait(60) is not None
            fake_stack.start_gateway()
            fake_stack.wait_ready()
    assert stream.error is not None and stream.error["code"] == "draining"
    row = service.ledger_row(stream.response.headers["x-request-id"])
    assert row["ending"] == "aborted"
    assert row["output_tokens"] >= len(stream.deltas())
