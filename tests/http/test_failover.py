"""Case 7b: an engine dies under a stream, another one goes on; the client sees one unbroken stream."""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_service import Service, Stream
from octavo_stack import Stack
from servers_of_tests import wait_until

FAKE = ("--fake", "--fake-step-ms", "10", "--num-blocks", "2048", "--max-running", "64")
REAL = ("--num-blocks", "512", "--max-running", "8")
ENGINES = ("engine-a", "engine-b")
START_CEILING_S = 280.0


@pytest.fixture(scope="module", params=[FAKE, pytest.param(REAL, marks=pytest.mark.timeout(500))])
def twins(request: pytest.FixtureRequest, redis_binary: Path, smollm2_dir: Path) -> Iterator[Service]:
    """Two engines of one model: made-up tokens first, then the real one."""
    with tempfile.TemporaryDirectory(prefix="octavo-", ignore_cleanup_errors=True) as home:
        stack = Stack(Path(home), redis_binary, smollm2_dir)
        try:
            stack.prepare()
            stack.flags = request.param  # type: ignore[attr-defined]
            for name in ENGINES:
                stack.start_engine(*request.param, name=name)
            stack.start_ledger_writer()
            stack.start_gateway()
            service = Service.of(stack)
            stack.wait_ready(START_CEILING_S)
            both_serve(service, START_CEILING_S)
            yield service
            service.close()
        finally:
            stack.stop()


def both_serve(service: Service, ceiling_s: float = 60.0) -> None:
    """Requests go to the one routed to longest ago, so two in a row show two replicas."""

    def replicas() -> set[str]:
        found = set()
        for _ in range(2):
            response = service.post("/v1/completions", service.completion_body("Hi", max_tokens=1))
            if response.status_code == 200:
                found.add(service.ledger_row(response.headers["x-request-id"])["replica"])
        return found

    wait_until(lambda: replicas() == set(ENGINES), "both engines serve", ceiling_s)


def through_a_loss(service: Service, body: dict[str, Any], number: signal.Signals) -> Stream:
    """The engine that serves it gets the signal once a few pieces have come; afterwards both serve again."""
    stack = service.stack
    assert stack is not None
    wait_until(lambda: not serving(service), "heartbeats of idle engines")
    with service.opened("/v1/completions", body) as (stream, events):
        for _ in range(6):
            next(events)
        wait_until(lambda: bool(serving(service)), "a heartbeat that tells who serves it")
        (lost,) = serving(service)
        stack.signal(lost, number)
        for _ in events:
            pass
    stream.lost = lost  # type: ignore[attr-defined]
    if number == signal.SIGKILL:
        stack.start_engine(*stack.flags, name=lost)  # type: ignore[attr-defined]
    else:
        stack.signal(lost, signal.SIGCONT)
    both_serve(service, START_CEILING_S)
    return stream


def serving(service: Service) -> list[str]:
    return [name for name in ENGINES if service.engine_stats(name).num_running]


def token_ids(stream: Stream) -> list[int]:
    choices = [choice for chunk in stream.chunks for choice in chunk["choices"]]
    return [token_id for choice in choices for token_id in choice.get("token_ids") or []]


@pytest.mark.parametrize("stops", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.8, "seed": 42},
        {"temperature": 1.0, "seed": 7, "presence_penalty": 1.5, "frequency_penalty": 0.5, "logprobs": 2},
    ],
    ids=["sampled", "penalised"],
)
def test_case_7b_another_engine_goes_on_with_the_same_tokens(
    twins: Service, fields: dict[str, Any], stops: signal.Signals
) -> None:
    body = twins.completion_body(
        "The old lighthouse keeper",
        max_tokens=200,
        ignore_eos=True,
        stream=True,
        return_token_ids=True,
        stream_options={"include_usage": True},
        **fields,
    )
    alone = twins.stream("/v1/completions", body)
    broken = through_a_loss(twins, body, stops)
    assert broken.is_done and broken.error is None
    assert broken.finish_reasons() == ["length"]
    assert broken.text() == alone.text()
    assert token_ids(broken) == token_ids(alone) and len(token_ids(alone)) == 200
    assert broken.usage == alone.usage | {"prompt_tokens_details": broken.usage["prompt_tokens_details"]}
    row = twins.ledger_row(broken.response.headers["x-request-id"])
    assert (row["ending"], row["output_tokens"], row["overrun_tokens"]) == ("finished", 200, 0)
    assert row["prompt_tokens"] == alone.usage["prompt_tokens"]
    assert row["replica"] != broken.lost  # type: ignore[attr-defined]


def test_answers_that_are_not_streamed_and_several_choices_move_too(twins: Service) -> None:
    body = twins.completion_body("Once", max_tokens=60, ignore_eos=True, n=3, seed=3, temperature=1.0)
    alone = twins.answer("/v1/completions", body)
    broken = through_a_loss(twins, {**body, "stream": True}, signal.SIGKILL)
    assert broken.is_done and broken.finish_reasons() == ["length"] * 3
    assert [broken.text(index) for index in range(3)] == [choice["text"] for choice in alone["choices"]]
