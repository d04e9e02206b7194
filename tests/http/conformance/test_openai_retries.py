"""The official client tries again when it is told to, waits as long as it is told to, and hangs up."""

import asyncio
import time
from collections.abc import Iterator
from signal import SIGKILL
from threading import Thread

import httpx
import openai
import pytest

from http_service import Service
from octavo_stack import FAKE_ENGINE, SetLimit, Stack

TENANT = "charlie"


class Watched:
    """A client of charlie's, and what came back on the wire."""

    def __init__(self, stack: Stack) -> None:
        self.answers: list[httpx.Response] = []
        self.arrived_at: list[float] = []
        self.client = openai.OpenAI(
            base_url=stack.base_url + "/v1",
            api_key=stack.keys[TENANT],
            max_retries=50,
            http_client=httpx.Client(event_hooks={"response": [self._note]}),
        )
        self.model = stack.model

    def _note(self, response: httpx.Response) -> None:
        self.answers.append(response)
        self.arrived_at.append(time.monotonic())

    @property
    def statuses(self) -> list[int]:
        return [answer.status_code for answer in self.answers]

    def ask(self) -> openai.types.Completion:
        return self.client.completions.create(model=self.model, prompt="x", max_tokens=2)


@pytest.fixture
def watched(fake_stack: Stack) -> Iterator[Watched]:
    one = Watched(fake_stack)
    yield one
    one.client.close()


@pytest.fixture
def set_limit(fake_stack: Stack) -> Iterator[SetLimit]:
    with fake_stack.limits_of(TENANT) as run:
        yield run


def test_a_rate_limit_is_waited_out(watched: Watched, set_limit: SetLimit) -> None:
    set_limit("requests_per_minute", 20, "--burst", "1")
    watched.ask()
    watched.ask()
    assert watched.statuses == [200, 429, 200]
    refused = watched.answers[1].headers
    assert refused["x-should-retry"] == "true" and 1 <= int(refused["retry-after"]) <= 60
    waited_ms = (watched.arrived_at[2] - watched.arrived_at[1]) * 1000
    assert waited_ms >= float(refused["retry-after-ms"])


def test_a_spent_budget_is_not_asked_for_again(watched: Watched, set_limit: SetLimit) -> None:
    set_limit("tokens_per_day", 1)
    with pytest.raises(openai.RateLimitError) as refused:
        watched.ask()
    assert refused.value.code == "insufficient_quota"
    assert watched.statuses == [429]
    assert watched.answers[0].headers["x-should-retry"] == "false"


def test_a_lost_engine_is_waited_for(watched: Watched, fake_service: Service) -> None:
    stack = fake_service.stack
    assert stack is not None
    stack.signal("engine", SIGKILL)
    starting = Thread(target=stack.start_engine, args=FAKE_ENGINE)
    answers: list[openai.types.Completion] = []
    asking = Thread(target=lambda: answers.append(watched.ask()))
    asking.start()
    starting.start()
    asking.join(120)
    starting.join(120)
    assert [answer.choices[0].finish_reason for answer in answers] == ["length"]
    assert watched.statuses[-1] == 200
    assert set(watched.statuses[:-1]) <= {503}
    assert all("retry-after" in answer.headers for answer in watched.answers[:-1])


def test_a_closed_stream_gives_everything_back(service: Service) -> None:
    """The fixture looks at blocks and leases afterwards."""
    with openai.OpenAI(base_url=service.base_url + "/v1", api_key=service.key) as client:
        stream = client.chat.completions.create(
            model=service.model,
            messages=[{"role": "user", "content": "Go on for ever."}],
            max_tokens=4000,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        for _ in range(3):
            assert next(stream).choices
        stream.close()


async def test_a_cancelled_call_gives_everything_back(service: Service) -> None:
    client = openai.AsyncOpenAI(base_url=service.base_url + "/v1", api_key=service.key)
    call = asyncio.create_task(
        client.completions.create(
            model=service.model, prompt="x", max_tokens=4000, extra_body={"ignore_eos": True}
        )
    )
    await asyncio.sleep(0.3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await client.close()


def test_a_client_that_waits_for_less_time_says_so(service: Service) -> None:
    with (
        openai.OpenAI(base_url=service.base_url + "/v1", api_key=service.key, max_retries=0) as client,
        pytest.raises(openai.APITimeoutError),
    ):
        client.with_options(timeout=0.5).completions.create(
            model=service.model, prompt="x", max_tokens=4000, extra_body={"ignore_eos": True}
        )
