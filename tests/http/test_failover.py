"""Case 7b: an engine dies under a stream, another one goes on; the client sees one unbroken stream."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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


@contextmanager
def two_engines(redis_binary: Path, model_dir: Path, flags: tuple[str, ...]) -> Iterator[Service]:
    with Stack.opened(redis_binary, model_dir) as stack:
        stack.prepare()
        for name in ENGINES:
            stack.start_engine(*flags, name=name)
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.wait_ready(START_CEILING_S)
        service = Service.of(stack)
        both_serve(service, START_CEILING_S)
        yield service
        service.close()


@pytest.fixture(scope="module")
def twins(redis_binary: Path, smollm2_dir: Path) -> Iterator[Service]:
    """Two engines of made-up tokens, which may be harmed; they serve again before the next test."""
    with two_engines(redis_binary, smollm2_dir, FAKE) as service:
        yield service


@pytest.fixture
def real_twins(redis_binary: Path, smollm2_dir: Path) -> Iterator[Service]:
    """Two engines with the real model."""
    with two_engines(redis_binary, smollm2_dir, REAL) as service:
        yield service


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
    """The engine that serves it gets the signal once a few pieces have come."""
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
    return stream


def heal(service: Service, lost: str) -> None:
    """Both engines serve again."""
    stack = service.stack
    assert stack is not None
    if stack.processes[lost].poll() is not None:
        stack.start_engine(*FAKE, name=lost)
    else:
        stack.signal(lost, signal.SIGCONT)
    both_serve(service)


def serving(service: Service) -> list[str]:
    return [name for name in ENGINES if service.engine_stats(name).num_running]


def token_ids(stream: Stream) -> list[int]:
    choices = [choice for chunk in stream.chunks for choice in chunk["choices"]]
    return [token_id for choice in choices for token_id in choice.get("token_ids") or []]


def check_one_stream(service: Service, number: signal.Signals, max_tokens: int, **fields: Any) -> str:
    """Answers which engine was lost."""
    body = service.completion_body(
        "The old lighthouse keeper",
        max_tokens=max_tokens,
        ignore_eos=True,
        stream=True,
        return_token_ids=True,
        stream_options={"include_usage": True},
        **fields,
    )
    alone = service.stream("/v1/completions", body)
    broken = through_a_loss(service, body, number)
    lost: str = broken.lost  # type: ignore[attr-defined]
    assert broken.is_done and broken.error is None
    assert broken.finish_reasons() == ["length"]
    assert broken.text() == alone.text()
    assert token_ids(broken) == token_ids(alone) and len(token_ids(alone)) == max_tokens
    for counted in ("prompt_tokens", "completion_tokens"):
        assert broken.usage[counted] == alone.usage[counted]
    row = service.ledger_row(broken.response.headers["x-request-id"])
    assert (row["ending"], row["output_tokens"], row["overrun_tokens"]) == ("finished", max_tokens, 0)
    assert (row["prompt_tokens"], row["replica"] == lost) == (alone.usage["prompt_tokens"], False)
    return lost


@pytest.mark.parametrize(
    ("number", "fields"),
    [
        (signal.SIGKILL, {"temperature": 0.8, "seed": 42}),
        (signal.SIGSTOP, {"temperature": 1.0, "seed": 7, "logprobs": 2}),
    ],
)
def test_case_7b_another_engine_goes_on_with_the_same_tokens(
    twins: Service, number: signal.Signals, fields: dict[str, Any]
) -> None:
    heal(twins, check_one_stream(twins, number, 200, **fields))


@pytest.mark.timeout(500)
def test_case_7b_with_the_real_model(real_twins: Service) -> None:
    """What it must remember: its seed and its penalties."""
    check_one_stream(
        real_twins, signal.SIGKILL, 80, temperature=0.9, seed=5, presence_penalty=1.0, frequency_penalty=0.5
    )


def test_several_choices_move_each_for_itself(twins: Service) -> None:
    body = twins.completion_body("Once", max_tokens=150, ignore_eos=True, n=3, seed=3, temperature=1.0)
    alone = twins.answer("/v1/completions", body)
    broken = through_a_loss(twins, {**body, "stream": True}, signal.SIGKILL)
    assert broken.is_done and broken.finish_reasons() == ["length"] * 3
    assert [broken.text(index) for index in range(3)] == [choice["text"] for choice in alone["choices"]]
    heal(twins, broken.lost)  # type: ignore[attr-defined]


def test_an_answer_that_is_not_streamed_moves_too(twins: Service) -> None:
    body = twins.completion_body("Twice", max_tokens=200, ignore_eos=True, seed=4, temperature=1.0)
    alone = twins.answer("/v1/completions", body)
    wait_until(lambda: not serving(twins), "heartbeats of idle engines")
    with ThreadPoolExecutor(1) as thread:
        broken = thread.submit(twins.answer, "/v1/completions", body)
        wait_until(lambda: bool(serving(twins)), "a heartbeat that tells who serves it")
        (lost,) = serving(twins)
        assert twins.stack is not None
        twins.stack.signal(lost, signal.SIGKILL)
        assert broken.result()["choices"] == alone["choices"]
    heal(twins, lost)
