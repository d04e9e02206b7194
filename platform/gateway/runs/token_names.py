"""Tokens as text in logprobs: exact where the bytes are UTF-8, spelt out where a character is cut in two."""

from collections.abc import Iterable
from typing import Any

from inference_engine.contract.events import TokenLogprobs
from text.model_text import ModelText


def token_name(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def chat_logprobs(
    text: ModelText, token_ids: Iterable[int], logprobs: Iterable[TokenLogprobs], num_top: int
) -> dict[str, Any]:
    content = [
        {
            **_entry(text, token_id, one.logprob),
            "top_logprobs": [_entry(text, top_id, value) for top_id, value in one.top[:num_top]],
        }
        for token_id, one in zip(token_ids, logprobs, strict=True)
    ]
    return {"content": content, "refusal": None}


def _entry(text: ModelText, token_id: int, logprob: float) -> dict[str, Any]:
    data = text.token_bytes(token_id)
    return {"token": token_name(data), "logprob": logprob, "bytes": list(data)}


class CompletionLogprobs:
    """The older shape, with offsets into the text; remembers where the last token ended."""

    def __init__(self, text: ModelText) -> None:
        self._text = text
        self._offset = 0

    def of_prompt(
        self, token_ids: list[int], logprobs: Iterable[TokenLogprobs], prompt_text: str
    ) -> dict[str, list[Any]]:
        """The first token has nothing before it, and so no logprob; the output starts behind the text."""
        first = token_name(self._text.token_bytes(token_ids[0]))
        self._offset = len(first)
        shaped = self.of(token_ids[1:], logprobs)
        self._offset = len(prompt_text)
        before = {"tokens": first, "token_logprobs": None, "top_logprobs": None, "text_offset": 0}
        return {name: [value, *shaped[name]] for name, value in before.items()}

    def of(self, token_ids: Iterable[int], logprobs: Iterable[TokenLogprobs]) -> dict[str, Any]:
        tokens: list[str] = []
        values: list[float] = []
        tops: list[dict[str, float]] = []
        offsets: list[int] = []
        for token_id, one in zip(token_ids, logprobs, strict=True):
            data = self._text.token_bytes(token_id)
            tokens.append(token_name(data))
            values.append(one.logprob)
            tops.append(self._top(one) | {tokens[-1]: one.logprob})
            offsets.append(self._offset)
            self._offset += len(data.decode("utf-8", "ignore"))
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    def _top(self, one: TokenLogprobs) -> dict[str, float]:
        named: dict[str, float] = {}
        for token_id, logprob in one.top:
            named.setdefault(token_name(self._text.token_bytes(token_id)), logprob)
        return named
