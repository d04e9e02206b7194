"""Case 7a: an engine that dies or stops is an error within two seconds, and service resumes by itself."""

import signal
import time
from collections.abc import Iterator

import pytest

from http_service import Service, checked_error
from octavo_stack import FAKE_ENGINE, Stack
from servers_of_tests import wait_until

SOON_S = 8.0
"""Two where the machine doesn't stand still; an engine that only takes no step counts as lost after ten."""


@pytest.fixture
def harmed_service(fake_service: Service, fake_stack: Stack) -> Iterator[Service]:
    """The test ends its engine; afterwards there is a new one, under the gateway that was there before."""
    gateway = fake_stack.processes["gateway"].pid
    yield fake_service
    fake_stack.signal("engine", signal.SIGKILL)
    wait_until(lambda: fake_stack.status("/ready") == 503, "the loss is seen")
    fake_stack.start_engine(*FAKE_ENGINE)
    fake_stack.wait_ready()
    assert fake_stack.processes["gateway"].pid == gateway
    assert fake_stack.processes["gateway"].poll() is None
    assert fake_service.complete(max_tokens=3, ignore_eos=True)["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_case_7a_an_open_stream_ends_with_an_error_event(
    harmed_service: Service, fake_stack: Stack, number: signal.Signals
) -> None:
    service = harmed_service
    body = service.chat_body(stream=True, max_tokens=2000, ignore_eos=True)
    with service.opened("/v1/chat/completions", body) as (stream, events):
        for _ in range(6):
            next(events)
        fake_stack.signal("engine", number)
        harmed_at = time.monotonic()
        for _ in events:
            pass
        took = time.monotonic() - harmed_at
    assert took < SOON_S
    assert len(stream.deltas()) >= 5
    assert stream.error is not None and stream.error["code"] == "engine_lost"
    assert not stream.is_done
    assert not stream.finish_reasons()
    wait_until(lambda: fake_stack.status("/ready") == 503, "not ready")
    assert fake_stack.status("/health") == 200
    row = service.ledger_row(stream.response.headers["x-request-id"])
    assert (row["ending"], row["code"]) == ("failed", "engine_lost")
    assert row["output_tokens"] >= len(stream.deltas())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_an_answer_that_is_not_streamed_fails_too(
    harmed_service: Service, fake_stack: Stack, number: signal.Signals
) -> None:
    service = harmed_service
    body = service.completion_body(stream=True, max_tokens=2000, ignore_eos=True)
    with service.opened("/v1/completions", body) as (_, events):
        next(events)
        fake_stack.signal("engine", number)
        refused = service.post("/v1/completions", service.completion_body(max_tokens=2000, ignore_eos=True))
        assert refused.status_code == 503
        assert checked_error(refused)["code"] in ("engine_lost", "no_ready_replica")
        assert refused.headers["x-should-retry"] == "true"


def test_without_an_engine_requests_are_refused_at_once(harmed_service: Service, fake_stack: Stack) -> None:
    fake_stack.signal("engine", signal.SIGKILL)
    wait_until(lambda: fake_stack.status("/ready") == 503, "not ready")
    for stream in (False, True):
        response = harmed_service.post("/v1/chat/completions", harmed_service.chat_body(stream=stream))
        assert (response.status_code, checked_error(response)["code"]) == (503, "no_ready_replica")
        assert 0 < int(response.headers["retry-after"]) <= 60
    models = harmed_service.http.get("/v1/models", headers=harmed_service.headers()).json()
    assert models == {"object": "list", "data": []}


def test_the_stopped_engine_that_wakes_up_serves_again(fake_service: Service, fake_stack: Stack) -> None:
    fake_stack.signal("engine", signal.SIGSTOP)
    try:
        wait_until(lambda: fake_stack.status("/ready") == 503, "not ready")
    finally:
        fake_stack.signal("engine", signal.SIGCONT)
    fake_stack.wait_ready()
    assert fake_service.complete(max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"] == 2


def test_a_response_whose_engine_dies_ends_with_failed_and_is_kept(
    harmed_service: Service, fake_stack: Stack
) -> None:
    service = harmed_service
    fields = {"input": "Hello", "max_output_tokens": 4000, "ignore_eos": True, "stream": True}
    with service.opened("/v1/responses", {"model": service.model, **fields}) as (stream, events):
        for event in events:
            if event["type"] == "response.output_text.delta":
                break
        fake_stack.signal("engine", signal.SIGKILL)
        *_, last = events
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "engine_lost"
    deltas = [one["delta"] for one in stream.events if one["type"] == "response.output_text.delta"]
    assert "".join(deltas) == last["response"]["output"][0]["content"][0]["text"] != ""
    found = service.http.get(f"/v1/responses/{last['response']['id']}", headers=service.headers())
    assert found.json() == last["response"]
