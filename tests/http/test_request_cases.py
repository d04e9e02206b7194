"""Cases 13 to 15 and 29, and whatever else can be wrong with a request."""

import json

import pytest

from http_service import Service, checked_error

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@pytest.mark.parametrize("max_tokens", [2147483647, 10**18, 10**30])
def test_case_13_huge_max_tokens_are_clamped(service: Service, max_tokens: int) -> None:
    """A stop string ends it, or the answer would be thousands of tokens long."""
    text = service.complete("abc", seed=5, max_tokens=40, ignore_eos=True)["choices"][0]["text"]
    body = {"seed": 5, "max_tokens": max_tokens, "stop": [text[40:44]], "ignore_eos": True}
    assert service.complete("abc", **body)["choices"][0]["finish_reason"] == "stop"
    assert service.chat(max_tokens=max_tokens, seed=5, stop=[" "])["choices"][0]["finish_reason"] == "stop"


def test_case_13_the_end_of_the_context_is_the_end(service: Service) -> None:
    length = service.http.get("/v1/models", headers=service.headers()).json()["data"][0]["max_model_len"]
    prompt = [1000] * (length - 3)
    answer = service.complete([prompt], max_tokens=10**18, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 3
    assert answer["choices"][0]["finish_reason"] == "length"
    error = service.refusal(COMPLETIONS, service.completion_body([1000] * length))
    assert error["code"] in ("context_length_exceeded", "kv_pool_exceeded")


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "5", True, [], {}, 1e300])
def test_case_13_wrong_max_tokens_are_refused(service: Service, field: str, value: object) -> None:
    error = service.refusal(CHAT, service.chat_body(**{field: value}))
    assert (error["param"], error["code"]) == (field, "invalid_request")
    if field == "max_tokens":
        assert service.refusal(COMPLETIONS, service.completion_body(**{field: value}))["param"] == field


def test_case_14_no_messages(service: Service) -> None:
    assert service.refusal(CHAT, {"model": service.model, "messages": []})["param"] == "messages"


def test_case_14_assistant_messages_alone(service: Service) -> None:
    body = {"model": service.model, "messages": [{"role": "assistant", "content": "I"}], "max_tokens": 2}
    assert service.post(CHAT, body).status_code in (200, 400)


@pytest.mark.parametrize("prompt", ["", [], [[]], [""], ["a", ""], [[1], []], [1, "a"], [1, [2]], ["a", [2]]])
def test_case_15_empty_and_mixed_prompts(service: Service, prompt: object) -> None:
    assert service.refusal(COMPLETIONS, service.completion_body(prompt))["param"] == "prompt"


@pytest.mark.parametrize("prompt", [{}, 5, None, True, [1.5], [True], [[True]], [["a"]], [[[1]]], [None]])
def test_prompts_of_wrong_types(service: Service, prompt: object) -> None:
    error = service.refusal(COMPLETIONS, service.completion_body(prompt))
    assert error["param"].startswith("prompt")


@pytest.mark.parametrize("prompt", [[-1], [999999999], [[5], [2**63]], [2**70]])
def test_token_ids_outside_the_vocabulary(service: Service, prompt: object) -> None:
    error = service.refusal(COMPLETIONS, service.completion_body(prompt))
    assert (error["param"], error["code"]) == ("prompt", "token_id_out_of_range")


def test_stop_token_ids_outside_the_vocabulary(service: Service) -> None:
    error = service.refusal(CHAT, service.chat_body(stop_token_ids=[999999]))
    assert (error["param"], error["code"]) == ("stop_token_ids", "token_id_out_of_range")


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer caf\xc3\xa9",
        b"Bearer \xff\xfe",
        "Bearer octavo_ключ".encode(),
        b"Bearer",
        b"",
        b"Basic YTpi",
        b"Bearer octavo_abc_def",
        b"Bearer " + b"x" * 5000,
    ],
)
def test_case_29_wrong_keys(service: Service, header: bytes) -> None:
    for method, path in [
        ("POST", CHAT),
        ("POST", COMPLETIONS),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/x"),
    ]:
        response = service.http.request(method, path, headers={b"authorization": header}, content=b"{}")
        assert response.status_code == 401
        assert checked_error(response)["code"] == "invalid_api_key"
        assert response.headers["x-should-retry"] == "false"


def test_no_key_at_all(service: Service) -> None:
    response = service.http.post(CHAT, json=service.chat_body())
    assert (response.status_code, checked_error(response)["code"]) == (401, "invalid_api_key")


def test_cookies_are_no_credentials(service: Service) -> None:
    response = service.http.get("/v1/models", headers={"cookie": f"authorization=Bearer {service.key}"})
    assert response.status_code == 401


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"not json",
        b'{"model": NaN}',
        b'{"model": "m", "temperature": Infinity}',
        b'\xef\xbb\xbf{"model": "m"}',
        b'{"model": "\xff"}',
        b'{"model": "m"} trailing',
        b"[" * 100_000,
        b'{"messages":' + b'[{"a":' * 50_000,
        b'{"model": "a\x00b"}',
    ],
)
def test_bodies_that_are_not_json(service: Service, raw: bytes) -> None:
    for path in (CHAT, COMPLETIONS):
        assert service.refusal(path, raw)["code"] in ("invalid_json", "invalid_request")


def test_a_field_given_twice_is_refused(service: Service) -> None:
    raw = b'{"model": "x", "messages": [{"role": "user", "content": "hi"}], "model": "y"}'
    error = service.refusal(CHAT, raw)
    assert (error["code"], error["param"]) == ("invalid_json", "model")


def test_field_names_within_texts_are_no_fields(service: Service) -> None:
    text = json.dumps({"model": 1, "a": {"model": 2}}) + ' "model": "model":'
    assert service.chat(text, max_tokens=1)["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize("body", [[], 5, "x", None, True])
def test_bodies_that_are_no_objects(service: Service, body: object) -> None:
    assert service.refusal(CHAT, body)["code"] == "invalid_request"


@pytest.mark.parametrize("name", ["frobnicate", "Model", "chat_template", "documents", "extra_body"])
def test_unknown_fields_are_named(service: Service, name: str) -> None:
    assert service.refusal(CHAT, service.chat_body(**{name: 1}))["param"] == name
    assert service.refusal(COMPLETIONS, service.completion_body(**{name: 1}))["param"] == name


def test_unknown_fields_within_fields_are_named(service: Service) -> None:
    options = {"include_usage": True, "x": 1}
    error = service.refusal(CHAT, service.chat_body(stream=True, stream_options=options))
    assert error["param"] == "stream_options.x"
    messages = [{"role": "user", "content": "hi", "x": 1}]
    assert service.refusal(CHAT, {"model": service.model, "messages": messages})["param"] == "messages[0].x"


NOT_YET = {
    "modalities": ["text", "audio"],
    "store": True,
    "reasoning_effort": "high",
    "functions": [{}],
}
NEUTRAL = {
    "n": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1,
    "logit_bias": {},
    "priority": 0,
    "response_format": {"type": "text"},
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "modalities": ["text"],
    "store": False,
    "functions": [],
    "user": "somebody",
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "service_tier": "auto",
}


@pytest.mark.parametrize("name", NOT_YET)
def test_what_is_not_served_yet_is_refused_by_name(service: Service, name: str) -> None:
    error = service.refusal(CHAT, service.chat_body(**{name: NOT_YET[name]}))
    assert (error["param"], error["code"]) == (name, "unsupported_parameter")


def test_neutral_values_and_nulls_are_accepted(service: Service) -> None:
    assert service.chat(max_tokens=1, **NEUTRAL)["usage"]["completion_tokens"] == 1
    assert service.chat(max_tokens=1, **dict.fromkeys([*NEUTRAL, *NOT_YET, "seed", "stop", "top_k"]))
    more = {"best_of": 1, "echo": False, "suffix": None, "logprobs": None}
    assert service.complete(max_tokens=1, **more)["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("fields", [{"suffix": "x"}])
def test_completions_refuse_what_is_not_served_yet(service: Service, fields: dict[str, object]) -> None:
    assert service.refusal(COMPLETIONS, service.completion_body(**fields))["param"] == next(iter(fields))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 2.1),
        ("temperature", -0.1),
        ("temperature", "1"),
        ("temperature", True),
        ("top_p", 1.1),
        ("top_k", -2),
        ("top_k", 1.5),
        ("min_p", 2),
        ("min_tokens", -1),
        ("seed", 2**63),
        ("seed", 1.5),
        ("seed", "1"),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", [""]),
        ("stop", 5),
        ("stop", [5]),
        ("stream", "true"),
        ("stream", 1),
        ("stream_options", {"include_usage": True}),
        ("user", 5),
        ("user", "u" * 513),
        ("metadata", {"a": 1}),
        ("metadata", {"a": "nul \0"}),
        ("metadata", {"nul \0": "a"}),
        ("user", "nul \0"),
        ("service_tier", "gold"),
        ("stop_token_ids", [True]),
        ("ignore_eos", 1),
        ("model", 5),
        ("model", ""),
    ],
)
def test_wrong_values_are_named(service: Service, name: str, value: object) -> None:
    for path, body in [(CHAT, service.chat_body()), (COMPLETIONS, service.completion_body())]:
        error = service.refusal(path, body | {name: value})
        assert error["param"].split("[")[0].split(".")[0] == name


@pytest.mark.parametrize(
    "fields",
    [
        {"top_logprobs": 5},
        {"logprobs": True, "top_logprobs": 21},
        {"logprobs": 3},
        {"min_tokens": 9, "max_tokens": 3},
    ],
)
def test_chat_fields_that_contradict(service: Service, fields: dict[str, object]) -> None:
    assert service.refusal(CHAT, service.chat_body(**fields))["param"] in fields


def test_two_names_for_one_limit_must_agree(service: Service) -> None:
    error = service.refusal(CHAT, service.chat_body(max_tokens=5, max_completion_tokens=6))
    assert error["param"] == "max_tokens"
    assert service.chat(max_tokens=3, max_completion_tokens=3, ignore_eos=True)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": 5},
        {"role": "robot", "content": "x"},
        {"content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": ["x"]},
        {"role": "assistant", "content": "x", "refusal": "no"},
        "x",
        None,
    ],
)
def test_messages_that_can_not_be_served(service: Service, message: object) -> None:
    error = service.refusal(CHAT, {"model": service.model, "messages": [message]})
    assert error["param"].startswith("messages")


def test_text_parts_and_a_whole_conversation(service: Service) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {
            "role": "assistant",
            "content": "ok",
            "refusal": None,
            "annotations": [],
            "audio": None,
            "tool_calls": None,
        },
        {"role": "user", "content": "go", "name": "bob"},
    ]
    body = {"model": service.model, "messages": messages, "max_tokens": 2, "ignore_eos": True}
    assert service.answer(CHAT, body)["usage"]["completion_tokens"] == 2


def test_unknown_models(service: Service) -> None:
    for path, body in [(CHAT, service.chat_body()), (COMPLETIONS, service.completion_body())]:
        error = service.refusal(path, body | {"model": "gpt-5"}, 404)
        assert (error["code"], error["param"]) == ("model_not_found", "model")


def test_unknown_paths_and_methods(service: Service) -> None:
    for path in ("/v1/nothing", "/chat/completions"):  # the second by clients that were given no /v1
        response = service.http.post(path, headers=service.headers())
        assert (response.status_code, checked_error(response)["code"]) == (404, "not_found")
    response = service.http.get(CHAT, headers=service.headers())
    assert (response.status_code, checked_error(response)["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"] == "POST"
    assert service.http.delete("/v1/models", headers=service.headers()).status_code == 405


def test_bodies_that_are_too_large(service: Service) -> None:
    raw = b'{"model": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    response = service.post(CHAT, raw)
    assert (response.status_code, checked_error(response)["code"]) == (413, "body_too_large")


def test_a_text_beyond_the_context_is_refused_by_its_bytes(service: Service) -> None:
    error = service.refusal(CHAT, service.chat_body("word " * 1_000_000))
    assert error["code"] == "context_length_exceeded"
    assert service.refusal(COMPLETIONS, service.completion_body("word " * 1_000_000))["param"] == "prompt"


def test_compressed_bodies_are_refused(service: Service) -> None:
    response = service.post(CHAT, b"\x1f\x8b", **{"content-encoding": "gzip"})
    assert response.status_code == 400


def test_headers_of_every_answer(service: Service) -> None:
    response = service.post(CHAT, service.chat_body(max_tokens=1), **{"x-client-request-id": "mine-1"})
    assert response.headers["x-client-request-id"] == "mine-1"
    assert response.headers["x-request-id"].startswith("req_")
    assert response.headers["openai-processing-ms"].isdigit()
    refused = service.post(CHAT, b"{", **{"x-client-request-id": "mine-2"})
    assert refused.headers["x-client-request-id"] == "mine-2"
    assert refused.headers["x-request-id"] != response.headers["x-request-id"]
    stream = service.stream(
        CHAT, service.chat_body(max_tokens=1, stream=True), **{"x-client-request-id": "m3"}
    )
    assert stream.response.headers["x-client-request-id"] == "m3"
    assert stream.response.headers["cache-control"] == "no-cache"
    assert "content-encoding" not in stream.response.headers


@pytest.mark.parametrize("value", ["with space", "x" * 600, "tab\tbed"])
def test_client_request_ids_that_could_do_harm_are_not_echoed(service: Service, value: str) -> None:
    response = service.http.get("/health", headers={"x-client-request-id": value})
    assert response.status_code == 200
    assert "x-client-request-id" not in response.headers


def test_health_and_readiness_need_no_key(service: Service) -> None:
    assert service.http.get("/health").json() == {"status": "ok"}
    assert service.http.get("/ready").json() == {"status": "ready"}
    assert service.http.head("/health").status_code == 200
