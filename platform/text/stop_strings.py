"""Finds stop strings in text that arrives in pieces, and lets nothing of them out.

One Knuth-Morris-Pratt automaton for each string ("Fast pattern matching in strings", 1977): its state is the
length of the longest end of the text so far that begins the string, so the largest state is exactly what has
to be held back. A character costs amortised constant time for each string.
"""

from collections.abc import Sequence

from .errors import PromptError

MAX_STOPS = 4
MAX_STOP_CHARS = 1024


def checked_stops(stop: object) -> tuple[str, ...]:
    """What a request may send as `stop`: nothing, a string or a list of strings. Raises PromptError."""
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list | tuple) or len(stops) > MAX_STOPS:
        raise PromptError(f"stop must be a string or a list of at most {MAX_STOPS} strings", "stop")
    for text in stops:
        if not isinstance(text, str) or not 0 < len(text) <= MAX_STOP_CHARS:
            raise PromptError(f"each stop must be a string of 1 to {MAX_STOP_CHARS} characters", "stop")
    return tuple(stops)


class StopMatcher:
    """Stops at the match that completes first; of several that end together, at the longest.

    So the outcome depends on the text alone, never on how it was cut into pieces.
    """

    def __init__(self, stops: Sequence[str], *, include_stop: bool = False) -> None:
        self.matched_stop: str | None = None
        self._include_stop = include_stop
        self._stops = [(stop, _fallbacks(stop)) for stop in stops]
        self._states = [0] * len(stops)
        self._first_characters = frozenset(stop[0] for stop in stops)
        self._held = ""

    @property
    def matched(self) -> bool:
        return self.matched_stop is not None

    def push(self, text: str) -> str:
        """What can be let out. Empty once `matched` is true."""
        if self.matched or (not self._held and self._first_characters.isdisjoint(text)):
            return "" if self.matched else text
        for index, character in enumerate(text, 1):
            num_matched = self._advance(character)
            if num_matched:
                return self._end(self._held + text[:index], num_matched)
        text = self._held + text
        cut = len(text) - max(self._states, default=0)
        self._held = text[cut:]
        return text[:cut]

    def flush(self) -> str:
        """The end of the text: what was held back turned out to begin nothing."""
        held, self._held = self._held, ""
        self._states = [0] * len(self._states)
        return held

    def _advance(self, character: str) -> int:
        """Length of the longest stop that this character completes, or 0."""
        longest = 0
        for index, (stop, fallbacks) in enumerate(self._stops):
            state = self._states[index]
            while state and stop[state] != character:
                state = fallbacks[state - 1]
            state += stop[state] == character
            self._states[index] = state
            if state == len(stop) > longest:
                longest = state
        return longest

    def _end(self, text: str, num_matched: int) -> str:
        self.matched_stop = text[len(text) - num_matched :]
        self._held = ""
        return text if self._include_stop else text[: len(text) - num_matched]


def _fallbacks(stop: str) -> list[int]:
    """For each prefix, the length of its longest proper end that also begins it."""
    fallbacks = [0] * len(stop)
    length = 0
    for index in range(1, len(stop)):
        while length and stop[index] != stop[length]:
            length = fallbacks[length - 1]
        length += stop[index] == stop[length]
        fallbacks[index] = length
    return fallbacks
