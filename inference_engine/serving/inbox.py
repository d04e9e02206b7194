"""What other threads ask of the loop: appended by any thread, taken by the loop's own."""

import threading
from collections import deque
from dataclasses import dataclass

from inference_engine.contract.events import Refused
from inference_engine.contract.requests import GatewayMessage

from .compilations import Compilation
from .outbox import Outbox


@dataclass(frozen=True, slots=True)
class SessionOpened:
    outbox: Outbox


@dataclass(frozen=True, slots=True)
class SessionClosed:
    session_id: int


@dataclass(frozen=True, slots=True)
class Received:
    session_id: int
    message: GatewayMessage
    received_at: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message that can't be read, of a request that is known: one bad request doesn't end the session."""

    session_id: int
    refused: Refused


@dataclass(frozen=True, slots=True)
class Compiled:
    """A constraint is compiled, or can't be."""

    compilation: Compilation


@dataclass(frozen=True, slots=True)
class StartDraining:
    """Refuse new requests from here on; the running ones go on."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the loop after this turn."""


Command = SessionOpened | SessionClosed | Received | Rejected | Compiled | StartDraining | Stop


class Inbox:
    """An unbounded queue; readers of sessions hold back while `is_full`, so memory stays bounded."""

    def __init__(self, capacity: int = 8192) -> None:
        self._commands: deque[Command] = deque()
        self._ready = threading.Event()
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._commands)

    @property
    def is_full(self) -> bool:
        return len(self._commands) >= self._capacity

    def put(self, *commands: Command) -> None:
        """All of them at once: whoever takes one has the others as well."""
        self._commands.extend(commands)
        self._ready.set()

    def take(self, count: int) -> list[Command]:
        """The first so many. The flag is lowered first: a command that comes meanwhile raises it again."""
        self._ready.clear()
        taken = [self._commands.popleft() for _ in range(count)]
        if self._commands:
            self._ready.set()
        return taken

    def wait(self, timeout_s: float | None = None) -> None:
        """Sleep until something has arrived, or for so long."""
        self._ready.wait(timeout_s)
