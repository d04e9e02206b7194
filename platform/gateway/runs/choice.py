"""One choice of an answer: token ids come in from an engine, text goes out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fleet.failover import UnbrokenGeneration
from fleet.generation import Generation
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Finished, Refused, TokenLogprobs
from tenants.errors import Denied
from text.stream_decoder import StreamDecoder
from text.tools.events import CallEnd, CallEvent, ParsedPart
from text.tools.parser import ToolParser

_REASONS = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}


@dataclass(slots=True)
class Piece:
    """What one event adds to a choice. The text may lag behind the tokens while a stop string may begin."""

    text: str
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] | None = None
    """Once, where they were asked for."""
    parts: Sequence[ParsedPart] = ()
    """Where tools may be called: the text and the calls in their order."""

    @property
    def calls(self) -> list[CallEvent]:
        return [part for part in self.parts if not isinstance(part, str)]


@dataclass(frozen=True, slots=True)
class ChoiceTools:
    parser: ToolParser
    is_parallel: bool
    """More than one call."""


class Choice:
    def __init__(
        self,
        index: int,
        prompt_ids: list[int],
        generation: Generation | UnbrokenGeneration,
        decoder: StreamDecoder,
        *,
        counts_prompt: bool = True,
        constraint_param: str = "response_format",
        tools: ChoiceTools | None = None,
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
        self._constraint_param = constraint_param
        self._tools = tools
        self._has_whole_call = False
        self._has_prompt_logprobs = False

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the answer."""
        return self.decoder.matched_stop

    async def accepted(self) -> None:
        """Wait until the engine has taken it. Raises Denied where it refuses, GenerationFailed."""
        event = await anext(self.generation, None)
        if type(event) is Accepted:
            self.note_accepted(event.cached_tokens)
        elif type(event) is Refused:
            param = self._constraint_param if event.param == "constraint" else event.param
            raise Denied(event.reason, event.message or "The engine refused the request.", param=param)
        else:
            raise Denied(Code.INTERNAL_ERROR, "The engine gave no answer.")

    def note_accepted(self, cached_tokens: int) -> None:
        """From now on its prompt counts. Idempotent."""
        if not self.is_accepted:
            self.is_accepted = True
            self.cached_tokens = min(cached_tokens, self.prompt_tokens)

    def take(self, delta: Delta) -> Piece:
        """On a stop match the engine is told to stop at once; what it still sends is overrun."""
        piece = self.decoder.push(delta.token_ids)
        count = piece.num_tokens
        self.num_tokens += count
        if piece.stopped:
            self.finish_reason = "stop"
            self.generation.abort()
        prompt = self._first_prompt_logprobs(delta)
        token_ids, logprobs = delta.token_ids, delta.logprobs or []
        if count < len(token_ids):
            token_ids, logprobs = token_ids[:count], logprobs[:count]
        return self._parsed(Piece(piece.text, token_ids, logprobs, prompt), is_end=piece.stopped)

    def _parsed(self, piece: Piece, *, is_end: bool) -> Piece:
        """With what is a call told from what is text."""
        if self._tools is None:
            return piece
        parser = self._tools.parser
        parts = parser.push(piece.text)
        if is_end:
            parts += parser.finish()
        if not self._tools.is_parallel:
            parts = self._until_first_call_ends(parts)
        for part in parts:
            if isinstance(part, CallEnd):
                self._has_whole_call = part.is_complete
        if self.finish_reason == "stop" and self._has_whole_call:
            self.finish_reason = "tool_calls"
        text = "".join(part for part in parts if isinstance(part, str))
        return replace(piece, text=text, parts=parts)

    def _until_first_call_ends(self, parts: list[ParsedPart]) -> list[ParsedPart]:
        end = next((index for index, part in enumerate(parts) if isinstance(part, CallEnd)), None)
        if end is None or self.finish_reason is not None:
            return parts
        self.finish_reason = "stop"
        self.generation.abort()
        return parts[: end + 1]

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
        return self._parsed(Piece(piece.text), is_end=True)
