"""What only the real model can show through the whole stack."""

import asyncio
from typing import Any

import openai

from benchmarks.long_prompt import NUM_SHORT, measure
from http_service import Service


async def test_64_streams_of_mixed_lengths_each_equal_their_solo_run(real_service: Service) -> None:
    """Sampled, at lengths of prompt and output of their own, all in one batch."""
    client = openai.AsyncOpenAI(
        base_url=real_service.base_url + "/v1", api_key=real_service.key, max_retries=0, timeout=300
    )

    async def one(number: int) -> tuple[str, str | None]:
        stream = await client.chat.completions.create(
            model=real_service.model,
            messages=[
                {"role": "user", "content": f"Write about number {number}. " + "Be brief. " * (number % 17)}
            ],
            seed=number,
            temperature=0.9,
            max_tokens=3 + number % 9,
            stream=True,
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        return text, chunks[-1].choices[0].finish_reason

    together = await asyncio.gather(*(one(number) for number in range(64)))
    alone = [await one(number) for number in range(64)]
    assert together == alone
    assert len({text for text, _ in alone}) > 40
    await client.close()


async def test_short_prompts_start_while_a_long_one_is_read(real_service: Service) -> None:
    figures = await measure(real_service.base_url + "/v1", real_service.key, real_service.model, 3, 300)
    assert figures["errors"] == []
    assert figures["short_ones_that_started_first"] == NUM_SHORT


def test_a_greedy_answer_makes_sense(real_service: Service) -> None:
    answer = real_service.complete("1, 2, 3, 4, 5, 6, 7, 8,", temperature=0, max_tokens=8)
    assert answer["choices"][0]["text"].startswith(" 9, 10")


def test_the_model_ends_by_itself(real_service: Service) -> None:
    answer = real_service.chat("Say hi.", temperature=0, max_tokens=200)
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert 0 < answer["usage"]["completion_tokens"] < 200


def test_logprobs_join_to_the_text(real_service: Service) -> None:
    answer = real_service.chat(
        "Reply with a single emoji", logprobs=True, top_logprobs=5, max_tokens=8, seed=1
    )
    choice = answer["choices"][0]
    joined = b"".join(bytes(token["bytes"]) for token in choice["logprobs"]["content"])
    assert joined.decode("utf-8", "replace") == choice["message"]["content"]
    for token in choice["logprobs"]["content"]:
        assert token["logprob"] <= 0.0
        ranked = [top["logprob"] for top in token["top_logprobs"]]
        assert ranked == sorted(ranked, reverse=True) and len(ranked) == 5


def test_a_repeated_prompt_is_found_in_the_cache(real_service: Service) -> None:
    text = "The same long beginning, said once more. " * 20
    first = real_service.chat(text, max_tokens=2, temperature=0)
    second = real_service.chat(text, max_tokens=2, temperature=0)
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= 64
    assert first["choices"][0]["message"] == second["choices"][0]["message"]


def test_drafts_change_nothing_but_the_number_of_steps(real_service: Service) -> None:
    """Streamed and not, with a stop string among accepted drafts, and with log probabilities."""
    text = "The cat sat on the mat. The dog lay by the door. A bird sang in the tree.\n"
    fields: dict[str, Any] = {"temperature": 0, "max_tokens": 40, "logprobs": 2, "stop": [" by the door"]}
    before = real_service.settled_stats()
    plain = real_service.complete(text * 3, **fields)
    between = real_service.settled_stats()
    drafted = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 8}, **fields}
    fast = real_service.complete(text * 3, **drafted)
    after = real_service.settled_stats()
    assert fast["choices"] == plain["choices"]
    assert fast["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    assert plain["choices"][0]["text"].endswith("The dog lay")
    assert after.num_accepted_tokens > between.num_accepted_tokens == before.num_accepted_tokens
    assert after.num_steps - between.num_steps < between.num_steps - before.num_steps
    streamed = real_service.stream_completion(text * 3, **drafted)
    assert streamed.text() == plain["choices"][0]["text"]


def test_drafts_serve_responses_too(real_service: Service) -> None:
    text = "Repeat this: " + "The cat sat on the mat. The dog lay by the door.\n" * 4
    body = {"model": real_service.model, "input": text, "store": False, "temperature": 0}
    body |= {"max_output_tokens": 60, "ignore_eos": True}
    plain = real_service.answer("/v1/responses", body)
    before = real_service.settled_stats()
    config = {"method": "ngram", "num_speculative_tokens": 8}
    fast = real_service.answer("/v1/responses", body | {"speculative_config": config})
    after = real_service.settled_stats()
    assert fast["output"][0]["content"] == plain["output"][0]["content"]
    assert after.num_accepted_tokens > before.num_accepted_tokens
