"""The shape of a text completion, streamed and whole."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.orders.order import Order
from gateway.runs.answer import Collected, identity_of
from gateway.runs.choice import Choice, Piece
from gateway.runs.chunks import NULL, ChunkWriter, encode
from gateway.runs.token_names import CompletionLogprobs
from inference_engine.contract.events import TokenLogprobs
from text.model_text import ModelText

_EMPTY = b'"text":""'


class CompletionFormat:
    def __init__(self, answer_id: str, order: Order, fingerprint: str, text: ModelText) -> None:
        self._order = order
        self._identity = identity_of(f"cmpl-{answer_id}", "text_completion", order.model, fingerprint)
        self._chunks = ChunkWriter(self._identity, include_usage=order.include_usage)
        self._logprobs: dict[int, CompletionLogprobs] = defaultdict(lambda: CompletionLogprobs(text))

    def opening(self, choice: Choice) -> bytes:
        echo = "" if self._awaits_prompt() else self._echo(choice)
        if not (echo or self._order.return_token_ids):
            return b""
        prompt_ids = b""
        if self._order.return_token_ids:
            prompt_ids = b',"prompt_token_ids":' + encode(choice.prompt_ids)
        return self._chunks.choice(choice.index, b'"text":' + encode(echo), extra=prompt_ids)

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        if piece.prompt_logprobs is not None:
            return self._prompt(choice, piece.prompt_logprobs) + self.piece(
                choice, replace(piece, prompt_logprobs=None)
            )
        has_extras = piece.token_ids and (piece.logprobs or self._order.return_token_ids)
        if not piece.text and not has_extras:
            return b""
        content = b'"text":' + encode(piece.text)
        if not has_extras:
            return self._chunks.choice(choice.index, content)
        logprobs = self._shaped(choice, piece.token_ids, piece.logprobs)
        token_ids = b',"token_ids":' + encode(piece.token_ids) if self._order.return_token_ids else b""
        return self._chunks.choice(
            choice.index, content, logprobs=NULL if logprobs is None else encode(logprobs), extra=token_ids
        )

    def closing(self, choice: Choice) -> bytes:
        return self._chunks.choice(choice.index, _EMPTY, finish_reason=encode(choice.finish_reason))

    def usage(self, usage: dict[str, object]) -> bytes:
        return self._chunks.usage(usage)

    def whole(self, collected: Sequence[Collected], usage: dict[str, object]) -> dict[str, Any]:
        return {**self._identity, "choices": [self._choice(one) for one in collected], "usage": usage}

    def _choice(self, one: Collected) -> dict[str, Any]:
        shaped: dict[str, Any] = {
            "index": one.index,
            "text": self._echo(one.choice) + "".join(one.texts),
            "logprobs": self._whole_logprobs(one),
            "finish_reason": one.choice.finish_reason,
        }
        if self._order.return_token_ids:
            shaped |= {"prompt_token_ids": one.choice.prompt_ids, "token_ids": one.token_ids}
        return shaped

    def _echo(self, choice: Choice) -> str:
        echoes = self._order.echoes
        return "" if echoes is None else echoes[choice.index // self._order.num_candidates]

    def _awaits_prompt(self) -> bool:
        """The prompt's text comes together with its logprobs."""
        return self._order.sampling.prompt_logprobs is not None

    def _prompt(self, choice: Choice, logprobs: list[TokenLogprobs]) -> bytes:
        content = b'"text":' + encode(self._echo(choice))
        return self._chunks.choice(
            choice.index, content, logprobs=encode(self._prompt_logprobs(choice, logprobs))
        )

    def _prompt_logprobs(self, choice: Choice, logprobs: list[TokenLogprobs]) -> dict[str, list[Any]]:
        return self._logprobs[choice.index].of_prompt(choice.prompt_ids, logprobs, self._echo(choice))

    def _whole_logprobs(self, one: Collected) -> dict[str, Any] | None:
        if one.prompt_logprobs is None:
            return self._shaped(one.choice, one.token_ids, one.logprobs)
        prompt = self._prompt_logprobs(one.choice, one.prompt_logprobs)
        output = self._logprobs[one.choice.index].of(one.token_ids, one.logprobs)
        return {name: values + output[name] for name, values in prompt.items()}

    def _shaped(self, choice: Choice, token_ids: list[int], logprobs: list[Any]) -> dict[str, Any] | None:
        if self._order.logprobs is None:
            return None
        return self._logprobs[choice.index].of(token_ids, logprobs)
