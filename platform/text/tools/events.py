"""What a parser makes of a model's output, in order: content, and the calls between it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallBegin:
    index: int
    """Of the call in the answer, from 0."""
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    index: int
    text: str
    """The next part of the arguments' JSON, never empty."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    index: int
    is_complete: bool
    """False where the output ended in the middle of the call."""


CallEvent = CallBegin | CallArguments | CallEnd
ParsedPart = str | CallEvent
"""A text is content."""
