"""Texts that break things come through tokenizer, prompt and stream as they are."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from http_service import Service, Stream
from requirements_of_tests import require
from scripted_stack import ScriptedStack
from stand_ins.tiny_text import SHARED_DATA

COMPLETIONS = "/v1/completions"
AT_ONCE = 32
"""Texts in one request."""
TORTURE_SEPARATOR = "__ggml_vocab_test__\n"


@pytest.fixture
def service(scripted: ScriptedStack) -> Service:
    return scripted.service


def data_file(name: str) -> Path:
    require(SHARED_DATA.is_dir(), "the shared data folder is not here")
    return SHARED_DATA / name


def utf8_lines() -> list[tuple[str, list[bytes]]]:
    """(kind, the byte strings of the line)"""
    lines = data_file("utf8/utf8tests.txt").read_text().splitlines()
    found = []
    for line in lines:
        number, _, rest = line.partition(":")
        if number and not line.startswith("#"):
            kind, *values = rest.split(":")
            if kind == "valid":
                found.append((kind, [":".join(values).encode()]))
            else:
                found.append((kind, [bytes.fromhex(value) for value in values if "nothing" not in value]))
    return found


def naughty() -> list[str]:
    return [text for text in json.loads(data_file("naughty_strings/blns.json").read_text()) if text]


def torture() -> list[str]:
    texts = data_file("tokenizer_torture/ggml-vocab-gpt-2.gguf.inp").read_text().split(TORTURE_SEPARATOR)
    return [text.removesuffix("\n") or "\n" for text in texts]


def valid_utf8() -> list[str]:
    return [data[0].decode() for kind, data in utf8_lines() if kind.startswith("valid") and data]


@pytest.mark.parametrize("source", [naughty, torture, valid_utf8], ids=lambda source: source.__name__)
def test_they_come_through_tokenizer_prompt_and_stream(
    source: Callable[[], list[str]], scripted: ScriptedStack, service: Service
) -> None:
    """The prompt's ids are what the engine is made to say, so that one text takes both ways."""
    words = words_of(scripted)
    texts = [text for text in source() if can_be_spelt(text, words)]
    assert len(texts) > 25
    scripted.say_prompts()
    for start in range(0, len(texts), AT_ONCE):
        come_through(service, scripted, texts[start : start + AT_ONCE])


def come_through(service: Service, scripted: ScriptedStack, texts: list[str]) -> None:
    ids = [scripted.ids_of(text) for text in texts]
    body = service.completion_body(texts, max_tokens=1000, stream=True, echo=True, return_token_ids=True)
    stream = service.stream(COMPLETIONS, body)
    assert stream.is_done and stream.error is None
    whole = service.complete(ids, max_tokens=1000, echo=True)["choices"]
    for index, text in enumerate(texts):
        assert prompt_ids_of(stream, index) == ids[index]
        assert stream.text(index) == whole[index]["text"] == text + text
        assert "".join(stream.deltas(index)[1:]) == text


def prompt_ids_of(stream: Stream, index: int) -> list[int]:
    choices = [choice for chunk in stream.chunks for choice in chunk["choices"]]
    return next(list(choice["prompt_token_ids"]) for choice in choices if choice["index"] == index)


def words_of(scripted: ScriptedStack) -> dict[bytes, int]:
    """Token ids by what they stand for."""
    vocabulary = scripted.text.vocabulary.all_bytes
    return {data: token_id for token_id, data in enumerate(vocabulary)}


def can_be_spelt(text: str, words: dict[bytes, int]) -> bool:
    """This model's vocabulary lacks a few bytes; its tokenizer leaves them out."""
    return all(bytes([byte]) in words for byte in text.encode())


def test_invalid_utf8_in_a_body_is_refused(service: Service) -> None:
    broken = [data[0] for kind, data in utf8_lines() if kind.startswith("invalid") and data]
    assert len(broken) > 40
    start = b'{"model": "%s", "max_tokens": 1, "prompt": "' % service.model.encode()
    for data in broken:
        assert service.refusal(COMPLETIONS, start + data + b'"}')["code"] == "invalid_json"


def test_bytes_of_tokens_that_are_no_text_become_replacement_characters(
    scripted: ScriptedStack, service: Service
) -> None:
    """As many as a decode of the whole has, streamed or not."""
    table = words_of(scripted)
    broken = [data[0] for kind, data in utf8_lines() if kind.startswith("invalid") and data]
    num_said = 0
    for data in broken:
        if any(data[at : at + 1] not in table for at in range(len(data))):
            continue
        num_said += 1
        scripted.say([table[data[at : at + 1]] for at in range(len(data))])
        expected = data.decode("utf-8", "replace")
        body = service.completion_body("x", max_tokens=1000)
        assert service.answer(COMPLETIONS, body)["choices"][0]["text"] == expected
        assert service.stream(COMPLETIONS, body | {"stream": True}).text() == expected
    assert num_said > 20


def test_naughty_strings_are_messages_like_any_other(scripted: ScriptedStack, service: Service) -> None:
    """In every place that takes a text. None of it becomes a control token."""
    scripted.say(scripted.ids_of("Yes."))
    for text in naughty():
        tool = {"type": "function", "function": {"name": "f", "description": text}}
        call = {"id": text[:200], "type": "function", "function": {"name": "f", "arguments": text}}
        messages = [
            {"role": "system", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": text[:200], "content": text},
        ]
        body = {"model": service.model, "messages": messages, "tools": [tool], "return_token_ids": True}
        answer = service.answer("/v1/chat/completions", body)
        assert answer["choices"][0]["message"]["content"] == "Yes."
        assert sum(token < 17 for token in answer["prompt_token_ids"]) == 4 * 2 + 1
