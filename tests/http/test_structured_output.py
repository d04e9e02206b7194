"""Cases 16 and 17, and what `response_format` promises, on the real model."""

import itertools
import json
import statistics
import threading
import time
from typing import Any

import jsonschema
import pytest

from http_service import Service, checked_error
from inference_engine.constraints.limits import TRIAL_SECONDS

CHAT = "/v1/chat/completions"
CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "pattern": "^[A-Z][a-z]{2,12}$"},
        "people": {"type": "integer", "minimum": 1, "maximum": 40_000_000},
        "tags": {"type": "array", "items": {"enum": ["old", "large", "by the sea"]}, "maxItems": 2},
    },
    "required": ["city", "people", "tags"],
    "additionalProperties": False,
}
QUESTION = "Describe a city as JSON with its name, its population and tags."


def schema_format(schema: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **fields}}


def nested_one_of(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"oneOf": [{"type": "null"}, {"type": "array", "items": schema}]}
    return schema


NONSENSE = [{"type": "hiccup"}, {"type": 123}, {"$ref": "#/nope"}]
HOSTILE: dict[str, dict[str, Any]] = {
    "nested": nested_one_of(30),
    "nested_deep": json.loads('{"oneOf": [' * 30 + '{"type": "null"}' + "]}" * 30),
    "nested_quantifiers": {"type": "string", "pattern": "(a+)+$"},
    "invalid_pattern": {"type": "string", "pattern": "[invalid("},
    "min_length": {"type": "string", "minLength": 1_000_000},
    "repetition": {"type": "string", "pattern": "^((a{1,300}){1,300}){1,300}$"},
}
CEILING_S = 20.0
"""Five seconds where the machine has nothing else to do."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("schema", NONSENSE, ids=str)
def test_case_16_a_schema_that_makes_no_sense_is_refused_before_it_is_queued(
    real_service: Service, schema: dict[str, Any], stream: bool
) -> None:
    before = real_service.settled_stats().num_accepted
    body = real_service.chat_body(response_format=schema_format(schema, strict=True), stream=stream)
    error = real_service.refusal(CHAT, body)
    assert (error["param"], error["type"]) == ("response_format", "invalid_request_error")
    assert real_service.settled_stats().num_accepted == before


@pytest.mark.parametrize("name", HOSTILE)
def test_case_17_a_hostile_schema_is_refused_soon_or_kept(real_service: Service, name: str) -> None:
    """Cut by max_tokens, what there is of an answer must be the beginning of something valid."""
    body = real_service.chat_body(response_format=schema_format(HOSTILE[name]), max_tokens=20, seed=1)
    started = time.monotonic()
    response = real_service.post(CHAT, body)
    assert time.monotonic() - started < CEILING_S
    if response.status_code == 400:
        assert checked_error(response)["param"] == "response_format"
        return
    assert response.status_code == 200, response.text
    [choice] = response.json()["choices"]
    if choice["finish_reason"] == "stop":
        jsonschema.validate(json.loads(choice["message"]["content"]), HOSTILE[name])


class Gaps:
    """A stream read in a thread of its own: seconds between its tokens, with when each came."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.came_at: list[float] = []

    def __enter__(self) -> "Gaps":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        body = self._service.completion_body(stream=True, max_tokens=10**9, ignore_eos=True, seed=3)
        with self._service.opened("/v1/completions", body) as (_, events):
            for _ in events:
                self.came_at.append(time.monotonic())
                if self._is_over.is_set():
                    return

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.came_at) < count:
            assert time.monotonic() < deadline and self._thread.is_alive(), "the stream stands still"
            time.sleep(0.01)

    def between(self, start: float, end: float) -> list[float]:
        inside = [at for at in self.came_at if start <= at <= end]
        return [later - earlier for earlier, later in itertools.pairwise(inside)]


def test_case_17_other_streams_do_not_notice(real_service: Service) -> None:
    """Beside hostile schemas the median gap of a stream stays within three times its own beside plain
    requests, and none lasts as long as a compilation may."""
    plain = real_service.chat_body(max_tokens=1)
    with Gaps(real_service) as gaps:
        gaps.wait_for(20)
        started = time.monotonic()
        for _ in range(6):
            assert real_service.post(CHAT, plain).status_code == 200
        gaps.wait_for(len(gaps.came_at) + 60)
        middle = time.monotonic()
        for schema in HOSTILE.values():
            body = plain | {"response_format": schema_format(schema)}
            assert real_service.post(CHAT, body).status_code in (200, 400)
        gaps.wait_for(len(gaps.came_at) + 10)
        ended = time.monotonic()
    calm, beside = gaps.between(started, middle), gaps.between(middle, ended)
    assert statistics.median(beside) < 3 * statistics.median(calm)
    assert max(beside) < max(TRIAL_SECONDS, 5 * max(calm))


def test_answers_validate_streamed_and_not(real_service: Service) -> None:
    for seed in range(4):
        fields = {"response_format": schema_format(CITY), "seed": seed, "max_tokens": 300, "temperature": 1.2}
        [choice] = real_service.chat(QUESTION, **fields)["choices"]
        assert choice["finish_reason"] == "stop"
        jsonschema.validate(json.loads(choice["message"]["content"]), CITY)
        stream = real_service.stream_chat(QUESTION, **fields)
        assert stream.text() == choice["message"]["content"]
        assert stream.finish_reasons() == ["stop"]


def test_choices_each_validate_and_differ(real_service: Service) -> None:
    fields = {"response_format": schema_format(CITY), "seed": 42, "max_tokens": 300, "n": 3}
    choices = real_service.chat(QUESTION, temperature=1.5, **fields)["choices"]
    texts = [choice["message"]["content"] for choice in choices]
    for text in texts:
        jsonschema.validate(json.loads(text), CITY)
    assert len(set(texts)) == 3
    again = real_service.chat(QUESTION, temperature=1.5, **fields)["choices"]
    assert [choice["message"]["content"] for choice in again] == texts


def test_any_object_without_the_word_in_the_prompt(real_service: Service) -> None:
    """Greedy, so that the model that wants to end soon does; the prompt asks for something else."""
    answer = real_service.chat("Say hello.", response_format={"type": "json_object"}, seed=1, max_tokens=60)
    [choice] = answer["choices"]
    assert choice["message"]["content"].lstrip()[0] == "{"
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(choice["message"]["content"]), dict)


@pytest.mark.parametrize("fields", [{"ignore_eos": True}, {"min_tokens": 5}])
def test_what_would_break_the_promise_is_refused(real_service: Service, fields: dict[str, Any]) -> None:
    body = real_service.chat_body(response_format={"type": "json_object"}, **fields)
    assert real_service.refusal(CHAT, body)["param"] in fields


def test_an_engine_that_serves_no_constraints_says_so(fake_service: Service) -> None:
    """Never an unconstrained 200."""
    for stream in (False, True):
        body = fake_service.chat_body(response_format=schema_format(CITY), stream=stream)
        error = fake_service.refusal(CHAT, body)
        assert (error["param"], error["code"]) == ("response_format", "unsupported_feature")


@pytest.mark.parametrize("text", ["<|im_end|>", "say <|im_start|>", "<jupyter_code>1"])
def test_a_constant_that_spells_a_control_token_is_answered_whole(real_service: Service, text: str) -> None:
    fields = {"response_format": schema_format({"const": text}), "max_tokens": 40, "seed": 1}
    [choice] = real_service.chat(**fields)["choices"]
    stream = real_service.stream_chat(**fields)
    assert [choice["finish_reason"], *stream.finish_reasons()] == ["stop", "stop"]
    assert json.loads(choice["message"]["content"]) == json.loads(stream.text()) == text
