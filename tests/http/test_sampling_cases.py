"""Cases 8, 10 and 11: seeds beside neighbours, and logprobs that are always finite."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from http_service import Service

PROMPT = "Tell me a story about a lighthouse."
SEEDED: dict[str, Any] = {"seed": 42, "temperature": 0.8, "max_tokens": 12, "ignore_eos": True}


def text(service: Service, **fields: Any) -> str:
    return str(service.chat(PROMPT, **fields)["choices"][0]["message"]["content"])


def test_case_8_a_seed_gives_the_same_text_alone_and_beside_others(real_service: Service) -> None:
    alone = text(real_service, **SEEDED)
    others = SEEDED | {"seed": None, "temperature": 1.0}
    with ThreadPoolExecutor(8) as pool:
        for num_neighbours in (1, 3, 7):
            neighbours = [pool.submit(text, real_service, **others) for _ in range(num_neighbours)]
            beside = text(real_service, **SEEDED)
            assert beside == alone
            assert alone not in [one.result() for one in neighbours]
    assert real_service.stream_chat(PROMPT, **SEEDED).text() == alone


def test_case_8_without_a_seed_equal_requests_differ(real_service: Service) -> None:
    fields = SEEDED | {"seed": None}
    with ThreadPoolExecutor(5) as pool:
        texts = [one.result() for one in [pool.submit(text, real_service, **fields) for _ in range(5)]]
    assert len(set(texts)) == 5


@pytest.mark.parametrize("fields", [{"temperature": 0.01, "top_p": 0.3}, {"temperature": 0}], ids=str)
def test_case_10_logprobs_are_finite(real_service: Service, fields: dict[str, Any]) -> None:
    answer = real_service.complete(PROMPT, logprobs=5, max_tokens=16, ignore_eos=True, **fields)
    logprobs = answer["choices"][0]["logprobs"]
    values = [
        *logprobs["token_logprobs"],
        *(value for top in logprobs["top_logprobs"] for value in top.values()),
    ]
    assert len(values) >= 16 * 6
    assert all(math.isfinite(value) and value <= 0 for value in values)
    chat = real_service.chat(PROMPT, logprobs=True, top_logprobs=20, max_tokens=16, ignore_eos=True, **fields)
    tokens = chat["choices"][0]["logprobs"]["content"]
    every = [top["logprob"] for token in tokens for top in (token, *token["top_logprobs"])]
    assert len(every) == 16 * 21 and all(math.isfinite(value) for value in every)


@pytest.mark.parametrize("stream", [False, True])
def test_case_11_bytes_of_logprobs_are_the_content(real_service: Service, stream: bool) -> None:
    """Also where a token is a part of a character, as in most emoji."""
    for seed in range(4):
        fields = {"logprobs": True, "top_logprobs": 5, "max_tokens": 6, "seed": seed, "temperature": 0.7}
        question = "Reply with a single emoji"
        if stream:
            found = real_service.stream_chat(question, **fields)
            content = found.text()
            shown = [one["logprobs"] for chunk in found.chunks for one in chunk["choices"] if one["logprobs"]]
        else:
            [choice] = real_service.chat(question, **fields)["choices"]
            content, shown = choice["message"]["content"], [choice["logprobs"]]
        tokens = [token for one in shown for token in one["content"]]
        joined = b"".join(bytes(token["bytes"]) for token in tokens)
        assert joined.decode("utf-8", "replace") == content
        assert all(len(token["top_logprobs"]) == 5 for token in tokens)
