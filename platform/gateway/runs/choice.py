"""One choice of an answer: token ids come in from an engine, text goes out."""

from dataclasses import dataclass, field

from fleet.generation import Generation
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Finished, Refused, TokenLogprobs
from tenants.errors import Denied
from text.stream_decoder import StreamDecoder

_REASONS = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}

_PARAMS = {"constraint": "response_format"}
"""Fields of Generate that clients know by another name."""


@dataclass(slots=True)
class Piece:
    """What one event adds to a choice. The text may lag behind the tokens while a stop string may begin."""

    text: str
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] | None = None
    """Once, where they were asked for."""


class Choice:
    def __init__(
        self,
        index: int,
        prompt_ids: list[int],
        generation: Generation,
        decoder: StreamDecoder,
        *,
        counts_prompt: bool = True,
    ) -> None:
        """Of several choices of one prompt, one counts it."""
        self.index = index
        self.prompt_ids = prompt_ids
        self.generation = generation
        self.decoder = decoder
        self.prompt_tokens = len(prompt_ids) if counts_prompt else 0
        self.is_accepted = False
        self.num_tokens = 0
        """Output tokens up to a stop match."""
        self.cached_tokens = 0
        self.finish_reason: str | None = None
        self._has_prompt_logprobs = False

    async def accepted(self) -> None:
        """Wait until the engine has taken it. Raises Denied where it refuses, GenerationFailed."""
        event = await anext(self.generation, None)
        if type(event) is Accepted:
            self.is_accepted = True
            self.cached_tokens = min(event.cached_tokens, self.prompt_tokens)
        elif type(event) is Refused:
            param = _PARAMS.get(event.param or "", event.param)
            raise Denied(event.code, event.message or "The engine refused the request.", param=param)
        else:
            raise Denied(Code.INTERNAL_ERROR, "The engine gave no answer.")

    def take(self, delta: Delta) -> Piece:
        """On a stop match the engine is told to stop at once; what it still sends is overrun."""
        piece = self.decoder.push(delta.token_ids)
        count = piece.num_tokens
        self.num_tokens += count
        if piece.stopped:
            self.finish_reason = "stop"
            self.generation.abort()
        prompt = self._first_prompt_logprobs(delta)
        if count == len(delta.token_ids):
            return Piece(piece.text, delta.token_ids, delta.logprobs or [], prompt)
        return Piece(piece.text, delta.token_ids[:count], (delta.logprobs or [])[:count], prompt)

    def _first_prompt_logprobs(self, delta: Delta) -> list[TokenLogprobs] | None:
        """Another engine that took the request over sends them again."""
        found = None if self._has_prompt_logprobs else delta.prompt_logprobs
        self._has_prompt_logprobs = self._has_prompt_logprobs or found is not None
        return found

    def end(self, finished: Finished) -> Piece:
        """Raises Denied where the engine gave the request up."""
        piece = self.decoder.finish()
        self.finish_reason = "stop" if piece.stopped else _REASONS.get(finished.reason)
        if self.finish_reason is None:
            code = finished.code or Code.INTERNAL_ERROR
            raise Denied(code, f"The engine could not finish the request ({code.value}).")
        return Piece(piece.text)
