"""Why and how the process ends: drained, at once, or because the loop died."""

import asyncio
import ctypes
import os
import signal
from enum import IntEnum

import structlog

log = structlog.get_logger(__name__)

_PR_SET_PDEATHSIG = 1


class ExitCode(IntEnum):
    CLEAN = 0
    START_FAILED = 1
    BROKEN = 70
    """The loop died or stalled: a supervisor should start another process."""
    BAD_SETTINGS = 78


class Shutdown:
    """The first wish drains, the second ends at once. Asyncio thread only."""

    def __init__(self, drain_s: float) -> None:
        self._default_drain_s = drain_s
        self.drain_s = drain_s
        self.requested = asyncio.Event()
        self.at_once = asyncio.Event()
        self.error: BaseException | None = None

    def install_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        log.info("signal", signal=signal.Signals(number).name)
        if self.requested.is_set():
            self.at_once.set()
        self.drain(self._default_drain_s)

    def drain(self, drain_s: float) -> None:
        """A later, shorter deadline doesn't replace the first: only a second signal hurries."""
        if not self.requested.is_set():
            self.drain_s = drain_s
            self.requested.set()

    def die(self, error: BaseException) -> None:
        self.error = error
        self.requested.set()
        self.at_once.set()


def die_with_parent(parent: int) -> None:
    """Ask Linux for a SIGTERM when the parent ends; `parent` is its pid as seen before this call."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit(ExitCode.CLEAN)
