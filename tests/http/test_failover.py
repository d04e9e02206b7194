"""Case 7b: an engine dies under a stream, another one goes on; the client sees one unbroken stream."""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from http_service import Service, Stream
from octavo_stack import FAKE_ENGINE, Stack
from servers_of_tests import wait_until

REAL_ENGINE = ("--num-blocks", "512", "--max-running", "8")
FIRST, SECOND = "engine", "engine-b"
START_CEILING_S = 280.0


@contextmanager
def second_engine(stack: Stack, *flags: str) -> Iterator[Service]:
    """Beside the one that the stack always has."""
    stack.start_engine(*flags, name=SECOND)
    service = Service.of(stack)
    wait_until(lambda: replicas(service) == {FIRST, SECOND}, "both engines serve", START_CEILING_S)
    yield service
    stack.signal(SECOND, signal.SIGKILL)
    wait_until(lambda: replicas(service) == {FIRST}, "one engine serves")
    service.close()


@pytest.fixture(scope="module")
def two_engines(fake_stack: Stack) -> Iterator[Service]:
    with second_engine(fake_stack, *FAKE_ENGINE) as service:
        yield service


@pytest.fixture
def twins(two_engines: Service) -> Iterator[Service]:
    """Two engines of made-up tokens, which may be harmed; they serve again before the next test."""
    yield two_engines
    stack = two_engines.stack
    assert stack is not None
    for name in (FIRST, SECOND):
        if stack.processes[name].poll() is not None:
            stack.start_engine(*FAKE_ENGINE, name=name)
        else:
            stack.signal(name, signal.SIGCONT)
    wait_until(lambda: replicas(two_engines) == {FIRST, SECOND}, "both engines serve again")


@pytest.fixture
def real_twins(stack: Stack) -> Iterator[Service]:
    """Two engines with the real model, of which the second may be harmed."""
    with second_engine(stack, *REAL_ENGINE) as service:
        yield service


def replicas(service: Service) -> set[str]:
    """Requests go to the one routed to longest ago, so two in a row show two replicas."""
    found = set()
    for _ in range(2):
        response = service.post("/v1/completions", service.completion_body("Hi", max_tokens=1))
        if response.status_code == 200:
            found.add(service.ledger_row(response.headers["x-request-id"])["replica"])
    return found


def serving(service: Service) -> list[str]:
    stack = service.stack
    assert stack is not None
    return [name for name in (FIRST, SECOND) if (stats := stack.figures_of(name)) and stats.num_running]


def num_made(stack: Stack) -> int:
    return sum(stats.output_tokens for name in (FIRST, SECOND) if (stats := stack.figures_of(name)))


def through_a_loss(
    service: Service, body: dict[str, Any], number: signal.Signals, may_be_lost: Sequence[str]
) -> tuple[Stream, str]:
    """The engine that serves it gets the signal once a few pieces have come. Asked again if it may not."""
    stack = service.stack
    assert stack is not None
    while True:
        wait_until(lambda: not serving(service), "idle engines")
        with service.opened("/v1/completions", body) as (stream, events):
            for _ in range(6):
                next(events)
            (lost,) = serving(service)
            if lost in may_be_lost:
                stack.signal(lost, number)
                for _ in events:
                    pass
                return stream, lost


def token_ids(stream: Stream) -> list[int]:
    choices = [choice for chunk in stream.chunks for choice in chunk["choices"]]
    return [token_id for choice in choices for token_id in choice.get("token_ids") or []]


def check_one_stream(
    service: Service, number: signal.Signals, may_be_lost: Sequence[str], max_tokens: int, **fields: Any
) -> None:
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
    broken, lost = through_a_loss(service, body, number, may_be_lost)
    assert broken.is_done and broken.error is None
    assert broken.finish_reasons() == ["length"]
    assert broken.text() == alone.text()
    assert token_ids(broken) == token_ids(alone) and len(token_ids(alone)) == max_tokens
    for counted in ("prompt_tokens", "completion_tokens"):
        assert broken.usage[counted] == alone.usage[counted]
    row = service.ledger_row(broken.response.headers["x-request-id"])
    assert (row["ending"], row["output_tokens"], row["overrun_tokens"]) == ("finished", max_tokens, 0)
    assert (row["prompt_tokens"], row["replica"] == lost) == (alone.usage["prompt_tokens"], False)


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
    check_one_stream(twins, number, (FIRST, SECOND), 200, **fields)


@pytest.mark.timeout(500)
def test_case_7b_with_the_real_model(real_twins: Service) -> None:
    """What it must remember: its seed and its penalties."""
    fields = {"temperature": 0.9, "seed": 5, "presence_penalty": 1.0, "frequency_penalty": 0.5}
    check_one_stream(real_twins, signal.SIGKILL, (SECOND,), 80, **fields)


def test_several_choices_move_each_for_itself(twins: Service) -> None:
    body = twins.completion_body("Once", max_tokens=150, ignore_eos=True, n=3, seed=3, temperature=1.0)
    alone = twins.answer("/v1/completions", body)
    broken, _ = through_a_loss(twins, {**body, "stream": True}, signal.SIGKILL, (FIRST, SECOND))
    assert broken.is_done and broken.finish_reasons() == ["length"] * 3
    assert [broken.text(index) for index in range(3)] == [choice["text"] for choice in alone["choices"]]


def test_an_answer_that_is_not_streamed_moves_too(twins: Service) -> None:
    body = twins.completion_body("Twice", max_tokens=200, ignore_eos=True, seed=4, temperature=1.0)
    alone = twins.answer("/v1/completions", body)
    stack = twins.stack
    assert stack is not None
    wait_until(lambda: not serving(twins), "idle engines")
    before = num_made(stack)
    with ThreadPoolExecutor(1) as thread:
        broken = thread.submit(twins.answer, "/v1/completions", body)
        wait_until(lambda: num_made(stack) > before + 5, "a few tokens")
        (lost,) = serving(twins)
        stack.signal(lost, signal.SIGKILL)
        assert broken.result()["choices"] == alone["choices"]
