"""The official Anthropic client against a running server."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from http_service import Service

MORE = {"ignore_eos": True, "seed": 7}
HELLO: Any = [{"role": "user", "content": "Say hello."}]
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather in a city, now.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


@pytest.fixture
def client(service: Service) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=service.base_url, api_key=service.key, max_retries=0) as client:
        yield client


@pytest.fixture
def real_client(real_service: Service) -> Iterator[anthropic.Anthropic]:
    url = real_service.base_url
    with anthropic.Anthropic(base_url=url, api_key=real_service.key, max_retries=0) as client:
        yield client


def create(client: anthropic.Anthropic, service: Service, messages: Any = HELLO, **fields: Any) -> Any:
    fields = {"max_tokens": 12, "extra_body": MORE, **fields}
    return client.messages.create(model=service.model, messages=messages, **fields)


def test_create_and_stream_tell_the_same(client: anthropic.Anthropic, service: Service) -> None:
    whole = create(client, service)
    assert (whole.type, whole.role, whole.stop_reason, whole.stop_sequence) == (
        "message",
        "assistant",
        "max_tokens",
        None,
    )
    assert whole.usage.output_tokens == 12 and whole._request_id.startswith("req_")
    events = list(create(client, service, stream=True))
    kinds = [event.type for event in events if event.type not in ("ping", "content_block_delta")]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert text == whole.content[0].text != ""
    [delta] = [event for event in events if event.type == "message_delta"]
    assert (delta.delta.stop_reason, delta.usage.output_tokens) == ("max_tokens", 12)


def test_pings_are_events(service: Service) -> None:
    body = {"model": service.model, "messages": HELLO, "max_tokens": 2, "stream": True, **MORE}
    stream = service.stream("/v1/messages", body)
    assert [event["type"] for event in stream.events].count("ping") == 1
    assert stream.response.headers["request-id"] == stream.response.headers["x-request-id"]


def test_the_stream_helper_puts_the_message_together(client: anthropic.Anthropic, service: Service) -> None:
    with client.messages.stream(
        model=service.model, messages=HELLO, max_tokens=12, extra_body=MORE
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == text == create(client, service).content[0].text  # type: ignore[union-attr]


def test_a_stop_sequence_is_named(client: anthropic.Anthropic, service: Service) -> None:
    text = create(client, service, max_tokens=40).content[0].text
    stops = ["\x00never", text[20:24]]
    stopped = create(client, service, max_tokens=40, stop_sequences=stops)
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", text[20:24])
    assert text[20:24] not in stopped.content[0].text


def test_system_and_blocks_make_the_prompt(client: anthropic.Anthropic, service: Service) -> None:
    """A text and a list of one text block are the same; what is sent is what is counted."""
    blocks: Any = [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}]
    system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    one = create(client, service, blocks, system=system)
    other = create(client, service, system="Be brief.")
    assert one.content[0].text == other.content[0].text
    counted = client.messages.count_tokens(model=service.model, messages=blocks, system=system)
    used = other.usage
    assert counted.input_tokens == used.input_tokens + used.cache_read_input_tokens
    longer = client.messages.count_tokens(model=service.model, messages=blocks, system="Be brief and kind.")
    assert longer.input_tokens == counted.input_tokens + 2


def test_a_forced_tool_is_used_and_its_result_is_read(
    real_client: anthropic.Anthropic, real_service: Service
) -> None:
    fields: Any = {"model": real_service.model, "tools": [WEATHER], "max_tokens": 200}
    fields["extra_body"] = {"temperature": 0}
    question: Any = {"role": "user", "content": "What is the weather in Paris?"}
    choice: Any = {"type": "any", "disable_parallel_tool_use": True}
    with real_client.messages.stream(messages=[question], tool_choice=choice, **fields) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        asked = stream.get_final_message()
    assert asked.stop_reason == "tool_use" and len(pieces) > 1
    [use] = asked.content
    assert use.type == "tool_use" and use.name == "get_weather" and set(use.input) == {"city"}
    whole = real_client.messages.create(messages=[question], tool_choice=choice, **fields)
    assert whole.content[0].input == use.input  # type: ignore[union-attr]
    result: Any = {"type": "tool_result", "tool_use_id": use.id, "content": "Rain."}
    answered: Any = [
        question,
        {"role": "assistant", "content": asked.content},
        {"role": "user", "content": [result]},
    ]
    told = real_client.messages.create(messages=answered, tool_choice={"type": "none"}, **fields)
    assert told.content[0].type == "text"
    failed: Any = {**result, "is_error": True}
    answered[-1] = {"role": "user", "content": [failed, {"type": "text", "text": "Go on."}]}
    count = real_client.messages.count_tokens
    longer = count(model=real_service.model, messages=answered).input_tokens
    assert longer > told.usage.input_tokens + (told.usage.cache_read_input_tokens or 0)


def test_errors_become_the_clients_exceptions(client: anthropic.Anthropic, service: Service) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        create(client, service, [])
    assert refused.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
    assert "messages" in refused.value.message
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model="nothing", messages=HELLO, max_tokens=1)
    with pytest.raises(anthropic.AuthenticationError):
        create(client.with_options(api_key="octavo_none"), service)
    bearer = anthropic.Anthropic(base_url=service.base_url, auth_token=service.key, max_retries=0)
    assert create(bearer, service).usage.output_tokens == 12


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/v1/messages", b"", 405, "invalid_request_error"),
        ("POST", "/v1/messages/nothing", b"", 404, "not_found_error"),
        ("POST", "/v1/messages", b"{", 400, "invalid_request_error"),
        ("POST", "/v1/messages", b"x" * (8 * 1024 * 1024 + 1), 413, "request_too_large"),
    ],
)
def test_every_refusal_has_the_interfaces_shape(
    service: Service, method: str, path: str, body: bytes, status: int, kind: str
) -> None:
    response = service.http.request(method, path, content=body, headers={"x-api-key": service.key})
    assert response.status_code == status
    told = response.json()
    assert (told["type"], told["error"]["type"]) == ("error", kind)
    assert told["request_id"] == response.headers["request-id"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "Hel"}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0]",
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "hiccup"}}}},
            "output_config.format",
        ),
        ({"container": "c"}, "container"),
    ],
)
def test_what_is_not_served_is_refused_by_name(service: Service, fields: dict[str, Any], named: str) -> None:
    body = {"model": service.model, "messages": HELLO, "max_tokens": 5, **fields}
    response = service.post("/v1/messages", body)
    assert response.status_code == 400, response.text
    assert named in response.json()["error"]["message"]
