"""Cases 9 and 12: several choices, penalties, biases, and the prompt as a part of the answer."""

from typing import Any

import pytest

from http_service import Service

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
FIELDS: dict[str, Any] = {"max_tokens": 12, "ignore_eos": True, "temperature": 1.0}


def texts(answer: dict[str, Any]) -> list[str]:
    return [one["message"]["content"] if "message" in one else one["text"] for one in answer["choices"]]


def test_case_9_eight_choices_ten_times(service: Service) -> None:
    for _ in range(10):
        answer = service.chat(n=8, **FIELDS)
        assert [one["index"] for one in answer["choices"]] == list(range(8))
        assert [one["finish_reason"] for one in answer["choices"]] == ["length"] * 8
        assert answer["usage"]["completion_tokens"] == 8 * 12
        assert answer["usage"]["prompt_tokens"] == service.chat(max_tokens=1)["usage"]["prompt_tokens"]
        assert len(set(texts(answer))) == 8


def test_case_9_eight_choices_streamed_ten_times(service: Service) -> None:
    for _ in range(10):
        stream = service.stream_chat(n=8, stream_options={"include_usage": True}, **FIELDS)
        assert stream.error is None
        closed = [
            choice["index"]
            for chunk in stream.chunks
            for choice in chunk["choices"]
            if choice["finish_reason"]
        ]
        assert sorted(closed) == list(range(8))
        roles = [
            choice["index"]
            for chunk in stream.chunks
            for choice in chunk["choices"]
            if "role" in choice["delta"]
        ]
        assert sorted(roles) == list(range(8))
        assert stream.usage["completion_tokens"] == 8 * 12
        assert len({stream.text(index) for index in range(8)}) == 8


def test_case_9_a_seed_gives_the_same_three_texts(service: Service) -> None:
    first = texts(service.chat(n=3, seed=42, **FIELDS))
    assert len(set(first)) == 3
    assert texts(service.chat(n=3, seed=42, **FIELDS)) == first
    stream = service.stream_chat(n=3, seed=42, **FIELDS)
    assert [stream.text(index) for index in range(3)] == first
    assert texts(service.chat(seed=42, **FIELDS)) == first[:1]


def test_choices_of_several_prompts(service: Service) -> None:
    body = {"n": 2, "seed": 7, **FIELDS}
    answer = service.complete(["Once upon", "A time ago there was"], **body)
    assert [one["index"] for one in answer["choices"]] == [0, 1, 2, 3]
    assert texts(answer)[:2] == texts(service.complete("Once upon", **body))
    assert texts(answer)[2:] == texts(service.complete("A time ago there was", **body))
    alone = service.complete(["Once upon", "A time ago there was"], max_tokens=1)
    assert answer["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"]
    assert answer["usage"]["completion_tokens"] == 4 * 12


def test_the_best_of_several_is_answered_and_all_are_counted(service: Service) -> None:
    body = {"seed": 7, "logprobs": 0, **FIELDS}
    candidates = service.complete(n=4, **body)["choices"]
    answer = service.complete(n=2, best_of=4, **body)
    means = [sum(one["logprobs"]["token_logprobs"]) / 12 for one in candidates]
    ranked = sorted(range(4), key=lambda index: -means[index])
    assert texts(answer) == [candidates[index]["text"] for index in ranked[:2]]
    assert [one["index"] for one in answer["choices"]] == [0, 1]
    assert answer["usage"]["completion_tokens"] == 4 * 12
    quiet = service.complete(n=2, best_of=4, seed=7, **FIELDS)
    assert texts(quiet) == texts(answer)
    assert [one["logprobs"] for one in quiet["choices"]] == [None, None]


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 0},
        {"n": 129},
        {"n": True},
        {"n": 1.5},
        {"best_of": 1, "n": 2},
        {"best_of": 3, "stream": True},
        {"prompt": ["a"] * 65, "n": 2},
    ],
)
def test_choices_that_can_not_be_made(service: Service, fields: dict[str, Any]) -> None:
    param = service.refusal(COMPLETIONS, {**service.completion_body(), **fields})["param"]
    assert param == ("best_of" if "best_of" in fields else "n")


@pytest.mark.parametrize(
    ("bias", "code"),
    [
        ({"999999": 5}, "token_id_out_of_range"),
        ({"-1": 1}, "token_id_out_of_range"),
        ({"x": 1}, "invalid_request"),
        ({"999999": 5, "-1": 1, "x": 1}, "invalid_request"),
        ({"5": 101}, "invalid_request"),
        ({"5": "1"}, "invalid_request"),
        ([], "invalid_request"),
    ],
)
def test_case_12_biases_that_can_not_be_applied(service: Service, bias: object, code: str) -> None:
    for path, body in [(CHAT, service.chat_body()), (COMPLETIONS, service.completion_body())]:
        error = service.refusal(path, body | {"logit_bias": bias})
        assert (str(error["param"]).split("[")[0].split(".")[0], error["code"]) == ("logit_bias", code)


def test_case_12_valid_biases_and_penalties_are_served(service: Service) -> None:
    settings = {
        "logit_bias": {"5": 1, "0": -100},
        "stop_token_ids": [5],
        "presence_penalty": -2,
        "frequency_penalty": 2,
        "repetition_penalty": 1.2,
        "bad_words_ids": [[5], [6, 7]],
    }
    assert service.chat(max_tokens=2, **settings)["choices"][0]["finish_reason"]
    assert service.complete(max_tokens=2, **settings)["choices"][0]["finish_reason"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("frequency_penalty", "1"),
        ("repetition_penalty", 0),
        ("repetition_penalty", -1),
        ("bad_words_ids", [[]]),
        ("bad_words_ids", [5]),
        ("bad_words_ids", [[999999]]),
    ],
)
def test_penalties_out_of_range(service: Service, name: str, value: object) -> None:
    error = service.refusal(CHAT, service.chat_body(**{name: value}))
    assert str(error["param"]).split("[")[0] == name


@pytest.mark.parametrize("prompt", ["Once upon a time 😀", [500, 600, 700]])
def test_an_echo_is_the_prompt_and_then_the_answer(service: Service, prompt: object) -> None:
    plain = service.complete(prompt, seed=1, n=2, **FIELDS)
    echoed = service.complete(prompt, seed=1, n=2, echo=True, **FIELDS)
    prompt_text = texts(echoed)[0].removesuffix(texts(plain)[0])
    assert prompt_text
    assert texts(echoed) == [prompt_text + text for text in texts(plain)]
    if isinstance(prompt, str):
        assert prompt_text == prompt
    assert echoed["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    stream = service.stream_completion(prompt, seed=1, n=2, echo=True, **FIELDS)
    assert [stream.text(index) for index in range(2)] == texts(echoed)


def test_greedy_penalties_on_the_real_model(real_service: Service) -> None:
    """It repeats itself when greedy; a penalty stops that, and a bias decides alone."""
    body = {"max_tokens": 60, "temperature": 0, "ignore_eos": True}
    prompt = "one two one two one two one two one two"
    plain = real_service.complete(prompt, return_token_ids=True, **body)["choices"][0]["token_ids"]
    fresh = real_service.complete(prompt, return_token_ids=True, frequency_penalty=2.0, **body)["choices"][0]
    assert len(set(plain)) < len(set(fresh["token_ids"]))
    forced = real_service.complete(prompt, return_token_ids=True, logit_bias={"4242": 100}, **body)
    assert set(forced["choices"][0]["token_ids"]) == {4242}
    banned = real_service.complete(prompt, return_token_ids=True, bad_words_ids=[[plain[0]]], **body)
    assert plain[0] not in banned["choices"][0]["token_ids"]


def test_case_9_on_the_real_model(real_service: Service) -> None:
    first = texts(real_service.chat(n=3, seed=42, **FIELDS))
    assert len(set(first)) == 3
    assert texts(real_service.chat(n=3, seed=42, **FIELDS)) == first


@pytest.mark.parametrize("n", [1, 2])
def test_an_echo_with_logprobs_has_those_of_the_prompt(service: Service, n: int) -> None:
    prompt = "Once upon a time there was a lighthouse"
    body = {"seed": 1, "n": n, "logprobs": 2, "return_token_ids": True, **FIELDS}
    plain = service.complete(prompt, **body)["choices"]
    echoed = service.complete(prompt, echo=True, **body)
    stream = service.stream_completion(prompt, echo=True, **body)
    for one, without in zip(echoed["choices"], plain, strict=True):
        num_prompt = len(one["prompt_token_ids"])
        logprobs = one["logprobs"]
        assert one["text"] == prompt + without["text"]
        assert {len(values) for values in logprobs.values()} == {num_prompt + 12}
        assert logprobs["token_logprobs"][0] is logprobs["top_logprobs"][0] is None
        assert all(value < 0 for value in logprobs["token_logprobs"][1:])
        assert logprobs["token_logprobs"][num_prompt:] == without["logprobs"]["token_logprobs"]
        assert "".join(logprobs["tokens"][:num_prompt]) == prompt
        assert logprobs["text_offset"][num_prompt] == len(prompt)
        assert stream.text(one["index"]) == one["text"]
        streamed = [
            value
            for chunk in stream.chunks
            for choice in chunk["choices"]
            if choice["index"] == one["index"] and choice["logprobs"]
            for value in choice["logprobs"]["token_logprobs"]
        ]
        assert streamed == logprobs["token_logprobs"]
    assert echoed["usage"]["completion_tokens"] == n * 12
