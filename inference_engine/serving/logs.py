"""Logs as JSON lines on standard output. Prompts and outputs are never logged."""

import logging
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

PROGRESS_INTERVAL_S = 0.5


def configure_logs(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(),
    )


class ProgressLog:
    """A line for each stage of the start, its last step, and at most two a second in between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = ""
        self._logged_at = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`total` is 0 where it isn't known."""
        now = self._clock()
        if stage == self._stage and done != total and now - self._logged_at < PROGRESS_INTERVAL_S:
            return
        self._stage, self._logged_at = stage, now
        counts = {"done": done, "total": total} if total else {}
        log.info("stage", stage=stage, **counts)
