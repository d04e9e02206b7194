"""The official client's tool and parsing helpers. The calls are forced, so any model makes them."""

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from http_service import Service


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class GetWeather(BaseModel):
    """The weather in a city, now."""

    city: str
    unit: Unit


class Add(BaseModel):
    a: int
    b: int


class City(BaseModel):
    name: str
    is_capital: bool


WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")
ADD = openai.pydantic_function_tool(Add)
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]


@pytest.fixture
def client(real_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=real_service.base_url + "/v1", api_key=real_service.key) as client:
        yield client


@pytest.mark.parametrize("choice", ["required", NAMED], ids=str)
def test_a_forced_call_is_parsed_into_its_model(
    client: openai.OpenAI, real_service: Service, choice: Any
) -> None:
    completion = client.chat.completions.parse(
        model=real_service.model,
        messages=QUESTION,
        tools=[WEATHER, ADD] if choice == NAMED else [WEATHER],
        tool_choice=choice,
        parallel_tool_calls=False,
        temperature=0,
        max_tokens=300,
    )
    [parsed] = completion.choices
    assert parsed.finish_reason == "tool_calls"
    assert parsed.message.content is None
    assert parsed.message.tool_calls is not None
    [call] = parsed.message.tool_calls
    assert call.type == "function" and call.id.startswith("call_")
    assert call.function.name == "get_weather"
    assert isinstance(call.function.parsed_arguments, GetWeather)


def test_a_streamed_call_is_put_together_by_the_stream_helper(
    client: openai.OpenAI, real_service: Service
) -> None:
    fields: Any = {
        "model": real_service.model,
        "messages": QUESTION,
        "tools": [WEATHER],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "seed": 5,
        "max_tokens": 300,
    }
    with client.chat.completions.stream(**fields, stream_options={"include_usage": True}) as stream:
        events = list(stream)
    final = stream.get_final_completion()
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    deltas = [event for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert [event.name for event in done] == ["get_weather"]
    assert isinstance(done[0].parsed_arguments, GetWeather)
    assert len(deltas) > 3
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.choices[0].message.content is None
    assert final.usage is not None and final.usage.completion_tokens > 0
    whole = client.chat.completions.create(**fields)
    assert whole.choices[0].message.tool_calls is not None
    assert final.choices[0].message.tool_calls is not None
    assert (
        whole.choices[0].message.tool_calls[0].function.arguments  # type: ignore[union-attr]
        == final.choices[0].message.tool_calls[0].function.arguments
        == "".join(event.arguments_delta for event in deltas)
    )


def test_deltas_have_an_index_and_the_name_comes_once(client: openai.OpenAI, real_service: Service) -> None:
    stream = client.chat.completions.create(
        model=real_service.model,
        messages=QUESTION,
        tools=[WEATHER, ADD],
        tool_choice="required",
        seed=3,
        max_tokens=120,
        stream=True,
    )
    seen: set[int] = set()
    for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or []:
            assert isinstance(call.index, int) and call.function is not None
            if call.index in seen:
                assert call.id is None and call.type is None and call.function.name is None
                assert call.function.arguments
            else:
                seen.add(call.index)
                assert call.id and call.type == "function" and call.function.name in ("get_weather", "Add")
    assert seen == set(range(len(seen))) and seen


@pytest.mark.parametrize("stream", [False, True])
def test_case_18_a_call_cut_by_max_tokens_ends_with_length(real_service: Service, stream: bool) -> None:
    tools = [{"type": "function", "function": {"name": "note", "parameters": LONG}}]
    body = real_service.chat_body(
        "Write a long note.", tools=tools, tool_choice="required", max_tokens=30, seed=1, stream=stream
    )
    if stream:
        found = real_service.stream("/v1/chat/completions", body)
        assert found.finish_reasons() == ["length"]
        calls = [c for chunk in found.chunks for c in chunk["choices"][0]["delta"].get("tool_calls", [])]
        assert all(type(call["index"]) is int for call in calls)
        assert [call["function"].get("name") for call in calls] == ["note"] + [None] * (len(calls) - 1)
        arguments = "".join(call["function"].get("arguments", "") for call in calls)
    else:
        [choice] = real_service.answer("/v1/chat/completions", body)["choices"]
        assert choice["finish_reason"] == "length"
        [call] = choice["message"]["tool_calls"]
        arguments = call["function"]["arguments"]
    assert arguments.lstrip().startswith("{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments)


LONG = {"type": "object", "properties": {"text": {"type": "string", "minLength": 400}}, "required": ["text"]}


def test_a_conversation_with_results_goes_on(client: openai.OpenAI, real_service: Service) -> None:
    first = client.chat.completions.create(
        model=real_service.model,
        messages=QUESTION,
        tools=[WEATHER],
        tool_choice=NAMED,
        temperature=0,
        max_tokens=300,
    )
    message = first.choices[0].message
    assert message.tool_calls is not None
    result: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": '{"degrees": 21}'}
    conversation: Any = [*QUESTION, message, result]
    second = client.chat.completions.create(
        model=real_service.model, messages=conversation, tools=[WEATHER], max_tokens=12, temperature=0
    )
    assert second.choices[0].finish_reason in ("stop", "length")
    assert second.choices[0].message.content


def test_tools_that_are_not_to_be_called_are_not_shown(client: openai.OpenAI, real_service: Service) -> None:
    def prompt_tokens(**fields: Any) -> int:
        answer = client.chat.completions.create(
            model=real_service.model, messages=QUESTION, max_tokens=1, **fields
        )
        assert answer.usage is not None
        return answer.usage.prompt_tokens

    plain = prompt_tokens()
    assert prompt_tokens(tools=[WEATHER], tool_choice="none") == plain
    assert prompt_tokens(tools=[WEATHER]) > plain + 50


def test_structured_parse(client: openai.OpenAI, real_service: Service) -> None:
    fields: Any = {
        "model": real_service.model,
        "messages": [{"role": "user", "content": "Name a city."}],
        "response_format": City,
        "seed": 2,
        "max_tokens": 400,
    }
    completion = client.chat.completions.parse(**fields)
    assert isinstance(completion.choices[0].message.parsed, City)
    with client.chat.completions.stream(**fields) as stream:
        stream.until_done()
    assert stream.get_final_completion().choices[0].message.parsed == completion.choices[0].message.parsed


def test_tools_and_a_format_give_one_of_the_two(client: openai.OpenAI, real_service: Service) -> None:
    for seed in range(2):
        completion = client.chat.completions.parse(
            model=real_service.model,
            messages=QUESTION,
            tools=[WEATHER],
            response_format=City,
            seed=seed,
            temperature=1.5,
            max_tokens=400,
            parallel_tool_calls=False,
        )
        message = completion.choices[0].message
        if message.tool_calls:
            assert isinstance(message.tool_calls[0].function.parsed_arguments, GetWeather)
        else:
            assert isinstance(message.parsed, City)


def test_a_parse_that_is_cut_short_says_so(client: openai.OpenAI, real_service: Service) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(
            model=real_service.model, messages=QUESTION, response_format=City, max_tokens=3
        )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "hiccup"}}}],
                "tool_choice": "required",
            },
            "tools",
        ),
    ],
)
def test_tools_that_make_no_sense_are_refused_by_name(
    client: openai.OpenAI, real_service: Service, fields: Any, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=real_service.model, messages=QUESTION, **fields)
    assert refused.value.param == param
