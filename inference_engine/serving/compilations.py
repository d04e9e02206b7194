"""Requests whose constraints are being compiled: received, not yet the scheduler's. Loop thread only.

They hold no KV and keep no step waiting, so they are not the loop's work; a session that closes, an abort, a
newer attempt and a deadline reach them like any other request.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import structlog

from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.matcher import Matcher
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Refused
from inference_engine.contract.requests import Generate

log = structlog.get_logger(__name__)


class CompilesConstraints(Protocol):
    def compile(self, generate: Generate) -> "Future[Matcher]":
        """Returns at once; the future holds ConstraintError or a matcher that has followed the output ids."""


@dataclass(frozen=True, slots=True, eq=False)
class Compilation:
    session_id: int
    generate: Generate
    received_at: float
    matcher: "Future[Matcher]"

    @property
    def deadline(self) -> float | None:
        deadline_ms = self.generate.deadline_ms
        return None if deadline_ms is None else self.received_at + deadline_ms / 1000

    def is_of(self, session_id: int, attempt: int) -> bool:
        return self.session_id == session_id and self.generate.attempt == attempt

    def refusal(self) -> Refused | None:
        """Why it came to nothing, once it is done."""
        error = self.matcher.exception()
        if error is None:
            return None
        if isinstance(error, ConstraintError):
            return self.refused(error.code, error.message, error.param)
        log.error("constraint_not_compiled", exc_info=error)
        return self.refused(Code.INTERNAL_ERROR)

    def refused(self, code: Code, message: str = "", param: str | None = None) -> Refused:
        generate = self.generate
        return Refused(
            request_id=generate.request_id, attempt=generate.attempt, code=code, message=message, param=param
        )


class Compilations:
    def __init__(self, compiler: CompilesConstraints | None, announce: Callable[[Compilation], None]) -> None:
        """`announce` is called with each that is done, in any thread. Without a compiler none can begin."""
        self._compiler = compiler
        self._announce = announce
        self._by_id: dict[str, Compilation] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def are_served(self) -> bool:
        return self._compiler is not None

    def begin(self, session_id: int, generate: Generate, received_at: float) -> None:
        assert self._compiler is not None
        matcher = self._compiler.compile(generate)
        compilation = Compilation(session_id, generate, received_at, matcher)
        self._by_id[generate.request_id] = compilation
        matcher.add_done_callback(lambda _: self._announce(compilation))

    def get(self, request_id: str) -> Compilation | None:
        return self._by_id.get(request_id)

    def take(self, compilation: Compilation) -> bool:
        """It is done. False: its request has been given up meanwhile."""
        request_id = compilation.generate.request_id
        if self._by_id.get(request_id) is not compilation:
            return False
        del self._by_id[request_id]
        return True

    def drop(self, compilation: Compilation) -> None:
        """What it leads to is wanted no more."""
        del self._by_id[compilation.generate.request_id]
        compilation.matcher.cancel()

    def of_session(self, session_id: int) -> list[Compilation]:
        return [each for each in self._by_id.values() if each.session_id == session_id]

    def expired(self, now: float) -> list[Compilation]:
        return [each for each in self._by_id.values() if each.deadline is not None and each.deadline <= now]

    def next_deadline(self) -> float | None:
        return min(
            (each.deadline for each in self._by_id.values() if each.deadline is not None), default=None
        )
