"""The official openai client, as people use it."""

from collections.abc import Iterator

import openai
import pytest

from http_service import Service


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=service.base_url + "/v1", api_key=service.key, max_retries=0) as client:
        yield client


IGNORE_EOS = {"ignore_eos": True}


def test_models(client: openai.OpenAI, service: Service) -> None:
    models = list(client.models.list())
    assert service.model in [model.id for model in models]
    model = client.models.retrieve(service.model)
    assert (model.object, model.owned_by) == ("model", "octavo")
    assert model.model_extra is not None and model.model_extra["max_model_len"] > 0
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("org/other")
    assert refused.value.code == "model_not_found"


def test_chat(client: openai.OpenAI, service: Service) -> None:
    answer = client.chat.completions.create(
        model=service.model,
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        max_completion_tokens=7,
        extra_body=IGNORE_EOS,
    )
    assert answer.id.startswith("chatcmpl-") and answer.object == "chat.completion"
    assert answer.model == service.model and answer.system_fingerprint
    [choice] = answer.choices
    assert choice.message.role == "assistant" and choice.message.content
    assert (choice.finish_reason, choice.index, choice.logprobs) == ("length", 0, None)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 7
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 7
    assert answer.usage.prompt_tokens_details is not None


def test_chat_streamed(client: openai.OpenAI, service: Service) -> None:
    fields = {"seed": 11, "max_tokens": 9, "extra_body": IGNORE_EOS}
    messages = [{"role": "user", "content": "Hi"}]
    whole = client.chat.completions.create(model=service.model, messages=messages, **fields)  # type: ignore[call-overload]
    stream = client.chat.completions.create(  # type: ignore[call-overload]
        model=service.model, messages=messages, stream=True, stream_options={"include_usage": True}, **fields
    )
    chunks = list(stream)
    assert {(chunk.id, chunk.created, chunk.model) for chunk in chunks} == {
        (chunks[0].id, chunks[0].created, service.model)
    }
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:-1])
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == whole.choices[0].message.content
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-2].choices[0].delta.content is None
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 9
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_without_usage_asked_for_none_is_sent(client: openai.OpenAI, service: Service) -> None:
    stream = client.chat.completions.create(
        model=service.model, messages=[{"role": "user", "content": "Hi"}], stream=True, max_tokens=3
    )
    assert all(chunk.choices and chunk.usage is None for chunk in stream)


@pytest.mark.parametrize(
    ("prompt", "num_choices"),
    [("Once upon", 1), (["Once", "upon", "a"], 3), ([9690, 198, 2683], 1), ([[9690], [198, 2683]], 2)],
)
def test_completions_of_every_kind_of_prompt(
    client: openai.OpenAI, service: Service, prompt: object, num_choices: int
) -> None:
    fields = {"model": service.model, "prompt": prompt, "seed": 4, "max_tokens": 6, "extra_body": IGNORE_EOS}
    answer = client.completions.create(**fields)  # type: ignore[call-overload]
    assert [choice.index for choice in answer.choices] == list(range(num_choices))
    assert {choice.finish_reason for choice in answer.choices} == {"length"}
    assert answer.usage.completion_tokens == 6 * num_choices
    texts = [""] * num_choices
    reasons = []
    for chunk in client.completions.create(stream=True, **fields):  # type: ignore[call-overload]
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert texts == [choice.text for choice in answer.choices]
    assert reasons == ["length"] * num_choices


def test_sixteen_tokens_unless_told_otherwise(client: openai.OpenAI, service: Service) -> None:
    answer = client.completions.create(model=service.model, prompt="x", extra_body=IGNORE_EOS)
    assert answer.usage is not None and answer.usage.completion_tokens == 16


def test_usage_agrees_with_the_token_ids(client: openai.OpenAI, service: Service) -> None:
    extra = IGNORE_EOS | {"return_token_ids": True}
    answer = client.completions.create(
        model=service.model, prompt="Count the tokens.", max_tokens=12, extra_body=extra
    )
    found = answer.choices[0].model_extra
    assert found is not None and answer.usage is not None
    assert len(found["token_ids"]) == answer.usage.completion_tokens == 12
    assert len(found["prompt_token_ids"]) == answer.usage.prompt_tokens
    chunks = list(
        client.completions.create(
            model=service.model, prompt="x", max_tokens=12, stream=True, seed=1, extra_body=extra
        )
    )
    ids = [one for chunk in chunks for one in (chunk.choices[0].model_extra or {}).get("token_ids", [])]
    assert len(ids) == 12


def test_chat_logprobs(client: openai.OpenAI, service: Service) -> None:
    answer = client.chat.completions.create(
        model=service.model,
        messages=[{"role": "user", "content": "Reply with a single emoji"}],
        logprobs=True,
        top_logprobs=5,
        max_tokens=6,
        extra_body=IGNORE_EOS,
    )
    [choice] = answer.choices
    assert choice.logprobs is not None and choice.logprobs.content is not None
    assert len(choice.logprobs.content) == 6
    for token in choice.logprobs.content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 5
    joined = b"".join(bytes(token.bytes or []) for token in choice.logprobs.content)
    assert joined.decode("utf-8", "replace") == choice.message.content


def test_completion_logprobs(client: openai.OpenAI, service: Service) -> None:
    fields = {"model": service.model, "prompt": "x", "max_tokens": 5, "seed": 8, "extra_body": IGNORE_EOS}
    answer = client.completions.create(logprobs=2, **fields)  # type: ignore[call-overload]
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs) == 5
    assert logprobs.text_offset[0] == 0
    assert all(token in top for token, top in zip(logprobs.tokens, logprobs.top_logprobs, strict=True))
    streamed = list(client.completions.create(logprobs=2, stream=True, **fields))  # type: ignore[call-overload]
    offsets = [o for chunk in streamed if (lp := chunk.choices[0].logprobs) for o in lp.text_offset]
    assert offsets == logprobs.text_offset


def test_errors_become_the_clients_exceptions(client: openai.OpenAI, service: Service) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=service.model, messages=[])
    assert (refused.value.param, refused.value.type) == ("messages", "invalid_request_error")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="octavo_no_key").models.list()


async def test_many_at_once_each_equal_their_solo_run(service: Service) -> None:
    import asyncio

    client = openai.AsyncOpenAI(base_url=service.base_url + "/v1", api_key=service.key, max_retries=0)

    async def one(number: int) -> str:
        stream = await client.completions.create(
            model=service.model,
            prompt=f"number {number}",
            seed=number,
            max_tokens=10 + number % 30,
            stream=True,
            extra_body=IGNORE_EOS,
        )
        return "".join([chunk.choices[0].text async for chunk in stream])

    together = await asyncio.gather(*(one(number) for number in range(64)))
    for number in range(0, 64, 9):
        assert await one(number) == together[number]
    await client.close()
