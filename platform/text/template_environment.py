"""The sandbox a model's chat template runs in: the environment such templates expect, with limits."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .tracked_text import TrackedText

MAX_EXPONENT = 64


class TemplateRefusal(TemplateError):
    """The template itself refuses the messages, in its own words."""


class TemplateLimit(TemplateError):
    """Rendering took too long or wrote too much."""


class GenerationTag(Extension):
    """`{% generation %}` marks the assistant's words for training; here its body is all that counts."""

    tags = {"generation"}  # noqa: RUF012  (the type jinja2 declares)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """One template's environment: rendering threads share it, each with a deadline of its own."""

    intercepted_binops = frozenset(("+", "*", "**"))

    def __init__(self, max_chars: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
        self.max_chars = max_chars
        self.clock = clock
        self._running = threading.local()
        self.filters["tojson"] = _to_json
        self.filters["join"] = self._join_filter
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    def start(self, seconds: float) -> None:
        """Give the calling thread's next rendering this long."""
        self._running.deadline = self.clock() + seconds

    def octavo_watch(self, items: Iterable[Any]) -> Iterator[Any]:
        """Every `for` of the template draws its items from here."""
        deadline = self._running.deadline
        for item in items:
            if self.clock() > deadline:
                raise TemplateLimit("the chat template ran for too long")
            yield item

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (isinstance(right, int) and right <= MAX_EXPONENT):
            raise TemplateLimit("the chat template computes too large a number")
        if operator == "*" and _size(left, right) > self.max_chars:
            raise TemplateLimit("the chat template writes too much")
        result = super().call_binop(context, operator, left, right)
        if operator == "+" and isinstance(result, str | list) and len(result) > self.max_chars:
            raise TemplateLimit("the chat template writes too much")
        return result

    def concat(self, parts: Iterable[Any]) -> TrackedText:
        """What the compiled template joins its output, macros and `~` with."""
        try:
            return TrackedText.concat(parts, self.max_chars)
        except OverflowError as error:
            raise TemplateLimit("the chat template writes too much") from error

    def _join_filter(
        self, items: Iterable[Any], separator: Any = "", attribute: str | int | None = None
    ) -> str:
        if attribute is not None:
            items = map(make_attrgetter(self, attribute), items)
        return self.concat(_interleaved(items, separator))


def _interleaved(items: Iterable[Any], separator: Any) -> Iterator[Any]:
    for index, item in enumerate(items):
        if index:
            yield separator
        yield item


def _size(left: Any, right: Any) -> int:
    """Length of a repeated sequence; 0 for a product of numbers."""
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, str | list | tuple) and isinstance(times, int):
            return len(sequence) * times
    return 0


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As models are trained on it: no HTML escapes, non-ASCII as it is."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRefusal(str(message))


def _strftime_now(form: str) -> str:
    """The host's local time, as templates are tested with."""
    return datetime.now().strftime(form)
