"""The official client's Responses interface against a running server: HTTP, helpers and its own sockets."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from http_service import Service
from octavo_stack import Stack

MORE = {"ignore_eos": True, "seed": 7}


class City(BaseModel):
    name: str
    is_capital: bool


class GetWeather(BaseModel):
    """The weather in a city, now."""

    city: str


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=service.base_url + "/v1", api_key=service.key, max_retries=0) as client:
        yield client


@pytest.fixture
def real_client(real_service: Service) -> Iterator[openai.OpenAI]:
    url = real_service.base_url + "/v1"
    with openai.OpenAI(base_url=url, api_key=real_service.key, max_retries=0) as client:
        yield client


def create(client: openai.OpenAI, service: Service, text: Any = "Say hello.", **fields: Any) -> Any:
    fields = {"max_output_tokens": 12, "extra_body": MORE, **fields}
    return client.responses.create(model=service.model, input=text, **fields)


def test_create_and_stream_tell_the_same(client: openai.OpenAI, service: Service) -> None:
    whole = create(client, service)
    assert (whole.status, whole.object, whole.error) == ("incomplete", "response", None)
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert whole.usage.output_tokens == 12
    assert whole.usage.total_tokens == whole.usage.input_tokens + 12
    assert whole.usage.input_tokens_details.cached_tokens >= 0
    events = list(create(client, service, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events if event.type != "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text != ""


def test_the_stream_helper_follows_to_the_end(client: openai.OpenAI, service: Service) -> None:
    """A stop string completes the response."""
    stop = create(client, service, max_output_tokens=40).output_text[20:24]
    fields: Any = {"model": service.model, "input": "Say hello.", "extra_body": {**MORE, "stop": stop}}
    with client.responses.stream(max_output_tokens=40, **fields) as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert (final.status, final.incomplete_details) == ("completed", None)
    assert stop not in final.output_text and final.output_text == "".join(texts) != ""


def test_logprobs_belong_to_the_text(client: openai.OpenAI, service: Service) -> None:
    fields: Any = {"include": ["message.output_text.logprobs"], "top_logprobs": 3}
    whole = create(client, service, **fields)
    part = whole.output[0].content[0]
    assert len(part.logprobs) == 12 and all(len(one.top_logprobs) == 3 for one in part.logprobs)
    assert b"".join(bytes(one.bytes) for one in part.logprobs).decode("utf-8", "replace") == part.text
    events = create(client, service, stream=True, **fields)
    streamed = [
        one for event in events if event.type == "response.output_text.delta" for one in event.logprobs
    ]
    assert [one.token for one in streamed] == [one.token for one in part.logprobs]


def test_a_stored_response_is_found_listed_and_deleted(client: openai.OpenAI, service: Service) -> None:
    given = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two"},
        {"role": "user", "content": [{"type": "input_text", "text": "Three"}]},
    ]
    made = create(client, service, given, metadata={"shelf": "8"}, instructions="Count.")
    found = client.responses.retrieve(made.id)
    assert found == made and found.metadata == {"shelf": "8"} and found.instructions == "Count."
    items = client.responses.input_items.list(made.id, order="asc", limit=2)
    assert [item.content[0].text for item in items.data] == ["One", "Two"] and items.has_more  # type: ignore[union-attr]
    everything = [item.content[0].text for item in client.responses.input_items.list(made.id, limit=1)]  # type: ignore[union-attr]
    assert everything == ["Three", "Two", "One"]
    client.responses.delete(made.id)
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(made.id)


def test_what_is_not_to_be_stored_is_not_found(client: openai.OpenAI, service: Service) -> None:
    made = create(client, service, store=False)
    assert made.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError) as refused:
        create(client, service, previous_response_id=made.id)
    assert refused.value.param == "previous_response_id"


def test_case_30_another_tenants_response_is_not_there(
    client: openai.OpenAI, service: Service, fake_stack: Stack
) -> None:
    made = create(client, service)
    bob = client.with_options(api_key=fake_stack.keys["bob"])
    asks = (
        lambda: bob.responses.retrieve(made.id),
        lambda: bob.responses.delete(made.id),
        lambda: bob.responses.cancel(made.id),
        lambda: bob.responses.input_items.list(made.id),
        lambda: create(bob, service, previous_response_id=made.id),
        lambda: create(bob, service, [{"type": "item_reference", "id": made.output[0].id}]),
    )
    for ask in asks:
        with pytest.raises(openai.NotFoundError):
            ask()
    assert client.responses.retrieve(made.id) == made


def test_a_chain_rebuilds_the_conversation(client: openai.OpenAI, service: Service) -> None:
    """The prompt is the same, to the token, as if all of it had been sent at once."""
    first = create(client, service, "One", instructions="Be brief.")
    second = create(client, service, "Two", previous_response_id=first.id)
    third = create(client, service, "Three", previous_response_id=second.id, instructions="Be kind.")
    at_once = [
        {"role": "user", "content": "One"},
        *first.output,
        {"role": "user", "content": "Two"},
        {"type": "item_reference", "id": second.output[0].id},
        {"role": "user", "content": "Three"},
    ]
    whole = create(client, service, at_once, instructions="Be kind.")
    assert third.usage.input_tokens == whole.usage.input_tokens
    assert third.output_text == whole.output_text
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        create(client, service, "Four", previous_response_id=third.id)


def test_truncation_drops_the_beginning(client: openai.OpenAI, service: Service) -> None:
    long = [{"role": "user", "content": f"{number} " + "word " * 900} for number in range(12)]
    with pytest.raises(openai.BadRequestError) as refused:
        create(client, service, long)
    assert refused.value.code == "context_length_exceeded"
    kept = create(client, service, long, truncation="auto", instructions="Be brief.")
    assert 6000 < kept.usage.input_tokens < 8192


def test_a_running_response_is_cancelled(client: openai.OpenAI, service: Service) -> None:
    """From another connection, by its id; then it is kept as far as it came."""
    stream = create(client, service, max_output_tokens=5000, stream=True)
    created = next(stream).response
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(client.responses.cancel(created.id)))
    thread.start()
    *_, last = stream
    thread.join(30)
    assert last.response.status == answers[0].status == "cancelled"
    assert last.response.output_text == answers[0].output_text != ""
    assert client.responses.cancel(created.id) == answers[0]


def test_forced_calls_and_their_outputs(real_client: openai.OpenAI, real_service: Service) -> None:
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")["function"]
    tools: Any = [{"type": "function", "strict": True, **tool}]
    fields: Any = {"model": real_service.model, "tools": tools, "temperature": 0, "max_output_tokens": 200}
    question: Any = {"role": "user", "content": "What is the weather in Paris?"}
    made = real_client.responses.create(
        input=[question], tool_choice="required", parallel_tool_calls=False, **fields
    )
    [call] = made.output
    assert call.type == "function_call" and call.status == "completed" and call.name == "get_weather"
    GetWeather.model_validate_json(call.arguments)
    output: Any = {
        "type": "function_call_output",
        "call_id": call.call_id,
        "output": json.dumps({"sky": "grey"}),
    }
    told = real_client.responses.create(
        input=[output], previous_response_id=made.id, tool_choice="none", **fields
    )
    alone = real_client.responses.create(input=[question], tool_choice="none", **fields)
    assert told.output[0].type == "message" and told.usage is not None and alone.usage is not None
    assert told.usage.input_tokens > alone.usage.input_tokens + 20


def test_a_streamed_call_has_its_events(real_client: openai.OpenAI, real_service: Service) -> None:
    tools: Any = [openai.pydantic_function_tool(GetWeather)]
    with real_client.responses.stream(
        model=real_service.model,
        input="What is the weather in Paris?",
        tools=[{"type": "function", "strict": True, **tools[0]["function"]}],
        tool_choice={"type": "function", "name": "GetWeather"},
        temperature=0,
        max_output_tokens=200,
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[2] == "response.output_item.added"
    assert kinds[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    [call] = final.output
    assert call.type == "function_call" and "".join(deltas) == call.arguments and len(deltas) > 1


def test_structured_output_is_parsed(real_client: openai.OpenAI, real_service: Service) -> None:
    parsed = real_client.responses.parse(
        model=real_service.model,
        input="Describe Paris as JSON with name and is_capital.",
        text_format=City,
        temperature=0,
        max_output_tokens=200,
    )
    assert isinstance(parsed.output_parsed, City)


def test_the_clients_own_socket(client: openai.OpenAI, service: Service) -> None:
    with client.responses.connect() as connection:
        for stream_id in ("a", "b"):
            connection.response.create(
                model=service.model, input="Say hello.", max_output_tokens=12, stream_id=stream_id, **{}
            )
        texts: dict[str, str] = {"a": "", "b": ""}
        ended: list[Any] = []
        for event in connection:
            if event.type == "response.output_text.delta":
                texts[event.stream_id or ""] += event.delta
            elif event.type in ("response.incomplete", "response.completed"):
                ended.append(event)
                if len(ended) == 2:
                    break
    assert {event.stream_id for event in ended} == {"a", "b"}
    for event in ended:
        assert event.response.output_text == texts[event.stream_id]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"input": [{"type": "computer_call"}]}, "input[0].type"),
        ({"input": [{"type": "function_call_output", "call_id": "x"}]}, "input[0].output"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"reasoning": {"effort": "high"}}, "reasoning"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"include": ["reasoning.encrypted_content"]}, "include[0]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": 3}}}, "text.format.schema"),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "hiccup"}}}},
            "text.format",
        ),
        ({"stream_options": {"include_obfuscation": False}}, "stream_options"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_is_not_served_is_refused_by_name(service: Service, fields: dict[str, Any], param: str) -> None:
    error = service.refusal("/v1/responses", {"model": service.model, "input": "x", **fields})
    assert error["param"] == param
