"""What both endpoints' answers have in common: identity, usage, and the calls that shape one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.runs.choice import Choice, Piece
from inference_engine.contract.events import TokenLogprobs
from text.tools.events import CallEvent


@dataclass(slots=True)
class Collected:
    """One choice of an answer that isn't streamed."""

    choice: Choice
    index: int
    """Of the choice in the answer."""
    texts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    calls: list[CallEvent] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] | None = None

    def add(self, piece: Piece) -> None:
        self.texts.append(piece.text)
        self.token_ids += piece.token_ids
        self.logprobs += piece.logprobs
        self.calls += piece.calls
        if piece.prompt_logprobs is not None:
            self.prompt_logprobs = piece.prompt_logprobs


class AnswerFormat(Protocol):
    """Chat or text completion."""

    def opening(self, choice: Choice) -> bytes:
        """Before the first token of a choice; may be empty."""

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        """Empty where the piece shows nothing."""

    def closing(self, choice: Choice) -> bytes:
        """The chunk with the finish reason."""

    def usage(self, usage: dict[str, object]) -> bytes: ...

    def whole(self, collected: Sequence[Collected], usage: dict[str, object]) -> dict[str, Any]: ...


def identity_of(answer_id: str, kind: str, model: str, fingerprint: str) -> dict[str, object]:
    return {
        "id": answer_id,
        "object": kind,
        "created": int(time.time()),
        "model": model,
        "system_fingerprint": f"fp_{fingerprint[:16]}",
    }


def usage_of(choices: Sequence[Choice]) -> dict[str, object]:
    prompt_tokens = sum(choice.prompt_tokens for choice in choices)
    output_tokens = sum(choice.num_tokens for choice in choices)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(choice.cached_tokens for choice in choices)},
    }
