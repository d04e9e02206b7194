"""Embeddings by the official openai client: a small random Qwen3 on a real engine, held to transformers."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from batch_client import BatchClient
from http_service import Service
from octavo_stack import Stack
from polling import until
from servers_of_tests import wait_until
from tiny_embedders import END_TOKEN, save_embedder, save_tokenizer

CONTEXT = 512
TEXTS = ["The cat sat on the mat.", "A feline rested on the rug.", "Stock markets fell sharply today.", "x"]
START_CEILING_S = 120.0
QUARTER = 16
"""Dimensions, of 64."""


@pytest.fixture(scope="module")
def embedder_dir(tmp_path_factory: pytest.TempPathFactory, smollm2_dir: Path) -> Path:
    """Its tokenizer puts an end token behind each text, as Qwen3-Embedding's does."""
    folder = tmp_path_factory.mktemp("models") / "embedder"
    vocabulary = Tokenizer.from_file(str(smollm2_dir / "tokenizer.json")).get_vocab_size()
    save_embedder(folder, "Qwen3", "lasttoken", is_bare=True, vocab_size=vocabulary)
    return save_tokenizer(folder, smollm2_dir)


@pytest.fixture(scope="module")
def embedding_stack(redis_binary: Path, embedder_dir: Path) -> Iterator[Stack]:
    with Stack.opened(redis_binary, embedder_dir) as stack:
        stack.model = "embedder"
        stack.prepare()
        stack.start_engine(
            "--num-blocks", "256", "--max-running", "16", "--dtype", "float32", "--threads", "1"
        )
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.wait_ready(START_CEILING_S)
        yield stack


@pytest.fixture
def embedder(embedding_stack: Stack) -> Iterator[Service]:
    service = Service.of(embedding_stack)
    yield service
    wait_until(service.is_idle, "everything given back", 60)
    service.close()


@pytest.fixture
def client(embedder: Service) -> Iterator[openai.OpenAI]:
    url = embedder.base_url + "/v1"
    with openai.OpenAI(base_url=url, api_key=embedder.key, max_retries=0) as client:
        yield client


def create(client: openai.OpenAI, texts: Any, **fields: Any) -> np.ndarray:
    """fp64 [inputs, dimensions], by the client's own default: base64."""
    answer = client.embeddings.create(model="embedder", input=texts, **fields)
    assert answer.object == "list" and answer.model == "embedder"
    assert [one.index for one in answer.data] == list(range(len(answer.data)))
    return np.array([one.embedding for one in answer.data])


@pytest.fixture(scope="module")
def token_lists(embedder_dir: Path) -> list[list[int]]:
    """The texts as the tokenizer reads them, with what it puts behind."""
    tokenizer = Tokenizer.from_file(str(embedder_dir / "tokenizer.json"))
    end = tokenizer.token_to_id(END_TOKEN)
    token_lists = [tokenizer.encode(text).ids for text in TEXTS]
    assert all(ids[-1] == end for ids in token_lists)
    return token_lists


@torch.inference_mode()
def reference(folder: Path, token_lists: list[list[int]]) -> np.ndarray:
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    states = [model(torch.tensor([ids])).last_hidden_state[0, -1] for ids in token_lists]
    return torch.nn.functional.normalize(torch.stack(states)).numpy()


def test_vectors_are_those_of_transformers(
    client: openai.OpenAI, embedder_dir: Path, token_lists: list[list[int]]
) -> None:
    found = create(client, TEXTS)
    assert np.abs(found - reference(embedder_dir, token_lists)).max() <= 1e-3
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)


def test_every_way_to_ask_gives_the_same_bits(client: openai.OpenAI, token_lists: list[list[int]]) -> None:
    """Floats and base64, one by one and together, texts and token ids; in the cache and not."""
    together = create(client, TEXTS)
    assert np.array_equal(create(client, TEXTS, encoding_format="float"), together)
    assert np.array_equal(create(client, token_lists), together)
    for text, ids, vector in zip(TEXTS, token_lists, together, strict=True):
        assert np.array_equal(create(client, text)[0], vector)
        assert np.array_equal(create(client, ids, encoding_format="float")[0], vector)


def test_dimensions_are_the_first_ones_at_length_one(client: openai.OpenAI) -> None:
    whole, cut = create(client, TEXTS), create(client, TEXTS, dimensions=QUARTER)
    assert cut.shape == (len(TEXTS), QUARTER)
    firsts = whole[:, :QUARTER]
    assert np.abs(cut - firsts / np.linalg.norm(firsts, axis=1, keepdims=True)).max() < 1e-6
    assert np.array_equal(create(client, TEXTS, dimensions=whole.shape[1]), whole)


def test_one_request_is_one_row_of_the_ledger(
    client: openai.OpenAI, embedder: Service, token_lists: list[list[int]]
) -> None:
    answer = client.embeddings.with_raw_response.create(model="embedder", input=TEXTS, user="u-1")
    usage, num_tokens = answer.parse().usage, sum(map(len, token_lists))
    assert (usage.prompt_tokens, usage.total_tokens) == (num_tokens, num_tokens)
    assert "x-ratelimit-remaining-requests" in answer.headers or "x-request-id" in answer.headers
    row = embedder.ledger_row(answer.headers["x-request-id"])
    assert (row["prompt_tokens"], row["output_tokens"], row["overrun_tokens"]) == (num_tokens, 0, 0)
    assert (row["ending"], row["endpoint"], row["model"]) == ("finished", "/v1/embeddings", "embedder")


def test_two_thousand_inputs_come_back_in_their_order(client: openai.OpenAI, embedder: Service) -> None:
    """More than the engine runs at once, and than a request may have choices."""
    few = [[1000 + number % 7, 5] for number in range(7)]
    many = [few[number % 7] for number in range(2048)]
    before = embedder.settled_stats()
    expected, found = create(client, few), create(client, many)
    assert np.array_equal(found, expected[np.arange(2048) % 7])
    after = embedder.settled_stats()
    assert after.num_finished - before.num_finished == 2048 + 7
    assert (after.num_refused, after.num_failed) == (before.num_refused, before.num_failed)


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"input": ""}, "input", "invalid_request"),
        ({"input": []}, "input", "invalid_request"),
        ({"input": ["a", ""]}, "input", "invalid_request"),
        ({"input": [[1], []]}, "input", "invalid_request"),
        ({"input": ["a", [1]]}, "input", "invalid_request"),
        ({"input": ["a", 1]}, "input", "invalid_request"),
        ({"input": None}, "input", "invalid_request"),
        ({"input": ["a"] * 2049}, "input", "invalid_request"),
        ({"input": [[1], [999_999]]}, "input", "token_id_out_of_range"),
        ({"input": ["a", "a b " * 600]}, "input", "context_length_exceeded"),
        ({"input": [[1], [1] * (CONTEXT + 1)]}, None, "context_length_exceeded"),
        ({"input": "a", "dimensions": 65}, "dimensions", "invalid_request"),
        ({"input": "a", "dimensions": 0}, "dimensions", "invalid_request"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "invalid_request"),
        ({"input": "a", "prompt_name": "query"}, "prompt_name", "invalid_request"),
    ],
)
def test_what_is_wrong_is_named(
    embedder: Service, fields: dict[str, Any], param: str | None, code: str
) -> None:
    error = embedder.refusal("/v1/embeddings", {"model": "embedder", **fields})
    assert (error["param"], error["code"]) == (param, code)


def test_a_text_may_fill_the_context(client: openai.OpenAI) -> None:
    assert create(client, [[5] * CONTEXT]).shape == (1, 64)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("/v1/completions", {"prompt": "x"}),
        ("/v1/responses", {"input": "x"}),
    ],
)
def test_it_generates_no_text(embedder: Service, path: str, fields: dict[str, Any]) -> None:
    error = embedder.refusal(path, {"model": "embedder", **fields})
    assert (error["param"], error["code"]) == ("model", "unsupported_feature")
    assert "embeddings" in error["message"]


def test_messages_are_refused_in_their_own_shape(embedder: Service) -> None:
    body = {"model": "embedder", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    answer = embedder.post("/v1/messages", body)
    assert answer.status_code == 400 and "embeddings" in answer.json()["error"]["message"]


def test_it_is_listed_and_reads_tokens(client: openai.OpenAI, embedder: Service) -> None:
    assert [model.id for model in client.models.list()] == ["embedder"]
    counted = embedder.answer("/tokenize", {"prompt": "x"})
    assert counted["count"] == 2 and counted["max_model_len"] == CONTEXT


async def test_a_client_that_goes_away_is_out_of_the_engine_at_once(embedder: Service) -> None:
    """Once the first of 2,000 inputs are there."""
    before = embedder.settled_stats()
    texts = [[7 + n % 50] * 400 for n in range(2000)]
    url = embedder.base_url + "/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=embedder.key, max_retries=0) as client:
        call = asyncio.create_task(client.embeddings.create(model="embedder", input=texts))
        await until(lambda: embedder.engine_stats().num_accepted > before.num_accepted, ceiling_s=60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    after = embedder.settled_stats()
    assert 0 < after.num_aborted - before.num_aborted <= 16
    assert after.num_accepted - before.num_accepted < 2000


def test_a_batch_embeds_as_a_request_does(
    embedding_stack: Stack, client: openai.OpenAI, embedder: Service, token_lists: list[list[int]]
) -> None:
    expected = create(client, TEXTS)
    embedding_stack.start_bulk()
    batches = BatchClient(embedding_stack)
    bodies: list[Any] = [
        {"input": TEXTS},
        {"input": token_lists[0], "encoding_format": "base64"},
        {"input": ""},
    ]
    shared = {"method": "POST", "url": "/v1/embeddings"}
    lines = [
        {"custom_id": str(number), "body": {"model": "embedder", **body}, **shared}
        for number, body in enumerate(bodies)
    ]
    batch = batches.ended(batches.start(lines, endpoint="/v1/embeddings"))
    together, alone = (one["response"]["body"] for one in batches.results(batch.output_file_id))
    assert np.array_equal([one["embedding"] for one in together["data"]], expected)
    assert np.array_equal(np.frombuffer(b64decode(alone["data"][0]["embedding"]), "<f4"), expected[0])
    [failed] = batches.results(batch.error_file_id)
    assert failed["response"]["body"]["error"]["param"] == "input"
    num_tokens = sum(map(len, token_lists)) + len(token_lists[0])
    assert batch.usage is not None and batch.usage.input_tokens == num_tokens
    wait_until(lambda: batches.billed(batch) == (num_tokens, 0), "the ledger has them all")
