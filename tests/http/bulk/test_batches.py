"""Batches as a client sees them: whole, failing, cancelled; and each answer billed once."""

import json
from typing import Any

import openai
import pytest

from batch_client import BatchClient, as_jsonl, chat_line
from octavo_stack import Stack
from servers_of_tests import wait_until


def test_a_batch_answers_every_line_once_in_order_and_bills_it_once(alice: BatchClient) -> None:
    lines = [
        chat_line(f"q {n}", alice.model, text=f"Number {n}.", max_tokens=5, ignore_eos=True)
        for n in range(230)
    ]
    batch = alice.ended(alice.start(lines, metadata={"job": "nightly"}))
    assert batch.status == "completed"
    assert batch.metadata == {"job": "nightly"}
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": 230, "completed": 230, "failed": 0}
    assert batch.error_file_id is None
    assert batch.model == alice.model
    results = alice.results(batch.output_file_id)
    assert [result["custom_id"] for result in results] == [line["custom_id"] for line in lines]
    assert len({result["id"] for result in results}) == 230
    first = results[0]
    assert set(first) == {"id", "custom_id", "response", "error"}
    assert first["error"] is None
    assert set(first["response"]) == {"status_code", "request_id", "body"}
    assert first["response"]["status_code"] == 200
    assert first["response"]["body"]["object"] == "chat.completion"
    usages = [result["response"]["body"]["usage"] for result in results]
    assert {usage["completion_tokens"] for usage in usages} == {5}
    spent = (sum(usage["prompt_tokens"] for usage in usages), 230 * 5)
    assert batch.usage is not None
    assert (batch.usage.input_tokens, batch.usage.output_tokens) == spent
    wait_until(lambda: alice.billed(batch) == spent, "the ledger has them all")
    times = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
    assert all(times)
    assert times == sorted(times, key=lambda at: at or 0)
    output = alice.api.files.retrieve(str(batch.output_file_id))
    assert output.purpose == "batch_output"


def test_text_completions_and_the_list(alice: BatchClient) -> None:
    body = {"model": alice.model, "prompt": "Once", "max_tokens": 3, "ignore_eos": True}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": body}
    batch = alice.ended(alice.start([line], endpoint="/v1/completions"))
    (result,) = alice.results(batch.output_file_id)
    assert result["response"]["body"]["object"] == "text_completion"
    assert alice.api.batches.list(limit=1).data[0].id == batch.id
    older = alice.api.batches.list(limit=1, after=batch.id)
    assert batch.id not in [each.id for each in older.data]


def test_responses_are_in_the_output_and_kept_nowhere_else(alice: BatchClient) -> None:
    body = {"model": alice.model, "input": "Say hello.", "max_output_tokens": 3}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": body}
    batch = alice.ended(alice.start([line], endpoint="/v1/responses"))
    (result,) = alice.results(batch.output_file_id)
    answer = result["response"]["body"]
    assert (answer["object"], answer["store"], answer["usage"]["output_tokens"]) == ("response", False, 3)
    assert answer["output"][0]["content"][0]["type"] == "output_text"
    with pytest.raises(openai.NotFoundError):
        alice.api.responses.retrieve(answer["id"])


def test_lines_that_cant_be_served_are_in_the_error_file_and_the_rest_is_answered(alice: BatchClient) -> None:
    lines = [
        chat_line("good", alice.model, max_tokens=2),
        chat_line("no such model", "gpt-99"),
        chat_line("streamed", alice.model, stream=True),
        chat_line("too warm", alice.model, temperature=9),
        {**chat_line("no messages", alice.model), "body": {"model": alice.model}},
        chat_line("too long", alice.model, text="word " * 60_000),
    ]
    batch = alice.ended(alice.start(lines))
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": 6, "completed": 1, "failed": 5}
    assert [result["custom_id"] for result in alice.results(batch.output_file_id)] == ["good"]
    failed = {result["custom_id"]: result["response"] for result in alice.results(batch.error_file_id)}
    seen = {
        name: (answer["status_code"], answer["body"]["error"]["code"], answer["body"]["error"]["param"])
        for name, answer in failed.items()
    }
    assert seen == {
        "no such model": (404, "model_not_found", "model"),
        "streamed": (400, "unsupported_parameter", "stream"),
        "too warm": (400, "invalid_request", "temperature"),
        "no messages": (400, "invalid_request", "messages"),
        "too long": (400, "context_length_exceeded", "messages"),
    }


def test_a_file_that_is_wrong_fails_the_batch_with_its_lines_numbers(alice: BatchClient) -> None:
    good, twin = chat_line("a", alice.model), chat_line("a", alice.model)
    content = as_jsonl([good, twin, chat_line("", alice.model)]) + b"{]\n"
    batch = alice.ended(alice.start_file(content))
    assert batch.status == "failed"
    assert batch.failed_at
    assert batch.output_file_id is None
    assert batch.errors is not None
    found = [(error.line, error.code, error.param) for error in batch.errors.data or []]
    assert found == [
        (2, "duplicate_custom_id", "custom_id"),
        (3, "invalid_request", "custom_id"),
        (4, "invalid_json", None),
    ]


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "empty_file", "no lines"),
        (b"\x1f\x8b\x08" + bytes(range(256)) * 50, "invalid_json", "compressed"),
        (bytes(range(256)) * 50, "invalid_json", "binary"),
        (b'{"custom_id":"a","body":' + b"[" * 500_000, "invalid_json", "nested too deeply"),
        (b'"' + b"x" * 9_000_000, "line_too_long", "longer than"),
    ],
)
def test_what_is_no_input_at_all_is_told_so(
    alice: BatchClient, content: bytes, code: str, words: str
) -> None:
    batch = alice.ended(alice.start_file(content))
    assert batch.status == "failed"
    assert batch.errors is not None
    assert batch.errors.data
    error = batch.errors.data[0]
    assert error.code == code
    assert words in (error.message or "")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"endpoint": "/v1/messages"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"input_file_id": "file-unknown"}, "input_file_id"),
        ({"metadata": {"a": 5}}, "metadata"),
        ({"priority": 1}, "priority"),
    ],
)
def test_a_batch_that_cant_be_made(alice: BatchClient, changes: dict[str, Any], param: str) -> None:
    file = alice.api.files.create(file=("a", b"{}"), purpose="batch")
    body = {"input_file_id": file.id, "endpoint": "/v1/completions", "completion_window": "24h", **changes}
    with pytest.raises(openai.BadRequestError) as refused:
        alice.api.post("/batches", body=body, cast_to=object)
    assert param in (refused.value.param or "")


def test_cancelling_keeps_what_is_done(alice: BatchClient, bob: BatchClient) -> None:
    lines = [chat_line(str(n), alice.model, max_tokens=150, ignore_eos=True) for n in range(400)]
    batch = alice.begun(alice.start(lines))
    for act in (bob.api.batches.cancel, bob.api.batches.retrieve):
        with pytest.raises(openai.NotFoundError):
            act(batch.id)
    assert alice.api.batches.cancel(batch.id).status == "cancelling"
    batch = alice.ended(batch)
    assert batch.status == "cancelled"
    assert batch.request_counts is not None
    done = alice.results(batch.output_file_id)
    rest = alice.results(batch.error_file_id)
    assert 0 < len(done) == batch.request_counts.completed < 400
    assert sorted(int(result["custom_id"]) for result in done + rest) == list(range(400))
    assert {result["error"]["code"] for result in rest} == {"batch_cancelled"}
    spent = sum(result["response"]["body"]["usage"]["completion_tokens"] for result in done)
    wait_until(lambda: alice.billed(batch)[1] == spent, "what is done is billed, and nothing else")
    assert alice.api.batches.cancel(batch.id).status == "cancelled"


def test_a_tenants_batches_in_flight_have_a_limit(bulk_stack: Stack, bob: BatchClient) -> None:
    bulk_stack.manage("set_limit", "bob", "batches", "1")
    lines = [chat_line(str(n), bob.model, max_tokens=200, ignore_eos=True) for n in range(200)]
    try:
        first = bob.start(lines)
        once = BatchClient(bulk_stack, "bob")
        once.api = once.api.with_options(max_retries=0)
        with pytest.raises(openai.RateLimitError, match="At most 1 batches"):
            once.start(lines)
        bob.api.batches.cancel(first.id)
        bob.ended(first)
        bob.ended(bob.start(lines[:1]))
    finally:
        bulk_stack.manage("set_limit", "bob", "batches", "none")


def test_lines_over_a_rate_limit_wait_and_are_answered(bulk_stack: Stack, bob: BatchClient) -> None:
    bulk_stack.manage("set_limit", "bob", "requests_per_minute", "600", "--burst", "5")
    try:
        lines = [chat_line(str(n), bob.model, max_tokens=2) for n in range(20)]
        batch = bob.ended(bob.start(lines))
        assert batch.request_counts is not None
        assert batch.request_counts.to_dict() == {"total": 20, "completed": 20, "failed": 0}
    finally:
        bulk_stack.manage("set_limit", "bob", "requests_per_minute", "none")


def test_json_that_is_read_back_is_the_same_everywhere(alice: BatchClient) -> None:
    """A name with everything that JSON escapes comes back as it was sent."""
    name = 'é "quoted" \\ \u2028 \U0001f600'
    batch = alice.ended(alice.start([chat_line(name, alice.model, max_tokens=1)]))
    raw = alice.api.files.content(str(batch.output_file_id)).text
    assert json.loads(raw)["custom_id"] == name
