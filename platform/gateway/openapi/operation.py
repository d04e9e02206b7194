"""What one endpoint takes and gives, as its folder declares it for the OpenAPI document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

READING = (401, 403, 404, 413, 429, 431, 500, 503)
"""Statuses of every keyed endpoint, besides 200."""
GENERATING = (400, 401, 403, 404, 408, 409, 413, 429, 431, 500, 503, 504)


class ErrorObject(Struct, forbid_unknown_fields=True):
    message: str
    type: str
    param: str | None
    code: str


class ErrorAnswer(Struct, forbid_unknown_fields=True):
    error: ErrorObject


@dataclass(frozen=True, kw_only=True)
class Operation:
    method: str
    path: str
    """`{name}` for what may stand there."""
    summary: str
    body: Any = None
    """The type that the endpoint decodes."""
    needs_body: bool = True
    answer: Any = None
    """Type of the JSON answer; None: any object."""
    media_type: str = "application/json"
    has_events: bool = False
    """With `stream: true` the answer is an event stream."""
    query: Any = None
    """A Struct of the query's fields."""
    statuses: tuple[int, ...] = GENERATING
    error: Any = ErrorAnswer
    is_public: bool = False
    neutral: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Fields of the body that are not served, and the values besides null that are accepted."""
    accepted: frozenset[str] = frozenset()
    """Fields of the body that are accepted without an effect."""

    @property
    def types(self) -> list[Any]:
        return [kind for kind in (self.body, self.answer, self.error) if kind is not None]
