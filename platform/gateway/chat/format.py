"""The shape of a chat completion, streamed and whole."""

from collections.abc import Sequence
from typing import Any

from gateway.chat.deltas import delta_of, whole_calls
from gateway.orders.order import Order
from gateway.runs.answer import Collected, identity_of
from gateway.runs.choice import Choice, Piece
from gateway.runs.chunks import NULL, ChunkWriter, encode
from gateway.runs.token_names import chat_logprobs
from text.model_text import ModelText

_ROLE = b'"delta":{"role":"assistant","content":""}'
_ROLE_ALONE = b'"delta":{"role":"assistant","content":null}'
"""Where there may be calls and no content."""
_EMPTY = b'"delta":{}'


class ChatFormat:
    def __init__(self, answer_id: str, order: Order, fingerprint: str, text: ModelText) -> None:
        self._order = order
        self._text = text
        name = f"chatcmpl-{answer_id}"
        self._identity = identity_of(name, "chat.completion", order.model, fingerprint)
        chunk_identity = self._identity | {"object": "chat.completion.chunk"}
        self._chunks = ChunkWriter(chunk_identity, include_usage=order.include_usage)

    def opening(self, choice: Choice) -> bytes:
        prompt_ids = b""
        if self._order.return_token_ids:
            prompt_ids = b',"prompt_token_ids":' + encode(choice.prompt_ids)
        role = _ROLE if self._order.tools is None else _ROLE_ALONE
        return self._chunks.choice(choice.index, role, extra_of_chunk=prompt_ids)

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        has_extras = piece.token_ids and (piece.logprobs or self._order.return_token_ids)
        deltas = [delta for part in piece.parts or (piece.text,) if (delta := delta_of(part))]
        if not has_extras:
            return b"".join([self._chunks.choice(choice.index, delta) for delta in deltas])
        first, *others = deltas or [_EMPTY]
        chunk = self._chunks.choice(
            choice.index, first, logprobs=self._logprobs(piece), extra=self._token_ids(piece)
        )
        return chunk + b"".join([self._chunks.choice(choice.index, delta) for delta in others])

    def closing(self, choice: Choice) -> bytes:
        return self._chunks.choice(choice.index, _EMPTY, finish_reason=encode(choice.finish_reason))

    def usage(self, usage: dict[str, object]) -> bytes:
        return self._chunks.usage(usage)

    def whole(self, collected: Sequence[Collected], usage: dict[str, object]) -> dict[str, Any]:
        answer = {**self._identity, "choices": [self._choice(one) for one in collected], "usage": usage}
        if self._order.return_token_ids:
            answer["prompt_token_ids"] = self._order.prompts[0]
        return answer

    def _choice(self, one: Collected) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(one.texts), "refusal": None}
        if one.calls:
            message |= {"content": message["content"] or None, "tool_calls": whole_calls(one.calls)}
        logprobs = None
        if self._order.logprobs is not None:
            logprobs = chat_logprobs(self._text, one.token_ids, one.logprobs, self._order.logprobs)
        shaped = {
            "index": one.index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": one.choice.finish_reason,
        }
        return shaped | {"token_ids": one.token_ids} if self._order.return_token_ids else shaped

    def _logprobs(self, piece: Piece) -> bytes:
        num_top = self._order.logprobs
        if num_top is None:
            return NULL
        return encode(chat_logprobs(self._text, piece.token_ids, piece.logprobs, num_top))

    def _token_ids(self, piece: Piece) -> bytes:
        return b',"token_ids":' + encode(piece.token_ids) if self._order.return_token_ids else b""
