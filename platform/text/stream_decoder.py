"""One choice's output: token ids in, text out, until a stop string ends it."""

from collections.abc import Sequence
from dataclasses import dataclass

from .decoding import IncrementalDecoder, Vocabulary
from .stop_strings import StopMatcher


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str
    num_tokens: int
    """Tokens that count for usage: all pushed ones, or those up to the one that completed a stop string."""
    stopped: bool


class StreamDecoder:
    """Push every token the engine emits, in order. Once `stopped`, abort the request: the rest is overrun."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        stops: Sequence[str] = (),
        *,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        min_tokens: int = 0,
    ) -> None:
        """Stop strings are looked for after the first `min_tokens` tokens."""
        self.num_tokens = 0
        self.stopped = False
        self._decoder = IncrementalDecoder(vocabulary, skip_special_tokens=skip_special_tokens)
        self._matcher = StopMatcher(stops, include_stop=include_stop) if stops else None
        self._bytes = vocabulary.visible_bytes if skip_special_tokens else vocabulary.all_bytes
        self._min_tokens = min_tokens

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the text."""
        return None if self._matcher is None else self._matcher.matched_stop

    def push(self, token_ids: Sequence[int]) -> TextPiece:
        if self.stopped:
            return TextPiece("", 0, True)
        decode, before = self._decoder.push, self.num_tokens
        if self._matcher is None:
            self.num_tokens += len(token_ids)
            return TextPiece("".join(map(decode, token_ids)), len(token_ids), False)
        texts: list[str] = []
        for token_id in token_ids:
            self.num_tokens += 1
            texts.append(self._released(self._matcher, decode(token_id)))
            if self._matcher.matched:
                self.stopped = True
                break
        return TextPiece("".join(texts), self.num_tokens - before, self.stopped)

    def finish(self) -> TextPiece:
        """What was still held back. `stopped` tells whether a stop string ended the text, now or before."""
        if self.stopped:
            return TextPiece("", 0, True)
        text = self._decoder.finish()
        if self._matcher is None:
            return TextPiece(text, 0, False)
        text = self._released(self._matcher, text)
        self.stopped = self._matcher.matched
        return TextPiece(text + self._matcher.flush(), 0, self.stopped)

    def token_bytes(self, token_id: int) -> bytes:
        """The token's bytes in this stream: joined and decoded, they give its text up to a stop string."""
        return self._bytes[token_id]

    def _released(self, matcher: StopMatcher, text: str) -> str:
        return text if self.num_tokens <= self._min_tokens else matcher.push(text)
