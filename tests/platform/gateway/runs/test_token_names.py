"""Tokens as text."""

from typing import Any

from gateway.runs.token_names import CompletionLogprobs, chat_logprobs, token_name
from inference_engine.contract.events import TokenLogprobs

BYTES = [b"a", "é".encode(), b"\xf0\x9f", b"\x98\x80", b"\xf0\x90"]


class Text:
    def token_bytes(self, token_id: int) -> bytes:
        return BYTES[token_id]


TEXT: Any = Text()


def test_whole_characters_and_halves() -> None:
    assert [token_name(data) for data in BYTES[:3]] == ["a", "é", "bytes:\\xf0\\x9f"]


def test_chat_logprobs_give_the_bytes() -> None:
    one = TokenLogprobs(logprob=-1.0, top=[(0, -0.1), (1, -0.2), (2, -0.3)])
    shaped = chat_logprobs(TEXT, [2, 3], [one, one], 2)
    assert b"".join(bytes(token["bytes"]) for token in shaped["content"]).decode() == "😀"
    assert [top["token"] for top in shaped["content"][0]["top_logprobs"]] == ["a", "é"]


def test_completion_logprobs_go_on_where_they_were() -> None:
    logprobs = CompletionLogprobs(TEXT)
    one = TokenLogprobs(logprob=-1.0, top=[(0, -0.1)])
    first = logprobs.of([0, 1], [one, one])
    second = logprobs.of([0], [one])
    assert (first["text_offset"], second["text_offset"]) == ([0, 1], [2])
    assert first["top_logprobs"][1] == {"a": -0.1, "é": -1.0}


def test_halves_of_characters_stay_apart() -> None:
    one = TokenLogprobs(logprob=-1.0, top=[(2, -0.1), (4, -0.2)])
    assert len(CompletionLogprobs(TEXT).of([0], [one])["top_logprobs"][0]) == 3


def test_the_first_token_of_a_prompt_has_no_logprob_and_the_output_starts_behind_the_text() -> None:
    logprobs = CompletionLogprobs(TEXT)
    one = TokenLogprobs(logprob=-1.0, top=[(0, -0.1)])
    prompt = logprobs.of_prompt([0, 1, 0], [one, one], "aéa")
    assert (prompt["tokens"], prompt["token_logprobs"]) == (["a", "é", "a"], [None, -1.0, -1.0])
    assert (prompt["top_logprobs"][0], prompt["text_offset"]) == (None, [0, 1, 2])
    assert logprobs.of([1], [one])["text_offset"] == [3]
    assert CompletionLogprobs(TEXT).of_prompt([0], [], "a")["token_logprobs"] == [None]
