"""When an engine counts as lost. Pure: the clock is an argument."""

from inference_engine.contract.limits import SILENCE_LIMIT_S

CHECK_INTERVAL_S = 0.1
STALL_LIMIT_S = 10.0
"""Longer than any step: 512 tokens at the end of a long context take a busy CPU more than a second, and an
engine that computes is not lost. A stopped or dead process shows by its silence long before."""
LATE_CHECK_S = 0.3
"""A check this late means that we stood still, not the engine: that time is not held against it."""


class Liveness:
    """One session's pulse: frames must come, and steps must pass while the engine holds work of ours."""

    def __init__(self, now: float, stall_limit_s: float = STALL_LIMIT_S) -> None:
        self._stall_limit_s = stall_limit_s
        self._frame_at = now
        self._progress_at = now
        self._checked_at = now
        self._step = -1
        self._has_work = False

    def frame(self, step: int, has_work: bool, now: float) -> None:
        self._frame_at = now
        if step != self._step or not self._has_work:
            self._progress_at = now
        self._step = step
        self._has_work = has_work

    def loss(self, now: float, has_requests: bool) -> str | None:
        """Why the engine is lost, or None. To be called every CHECK_INTERVAL_S."""
        self._forgive_our_own_pause(now)
        if not has_requests:
            self._progress_at = now
        if now - self._frame_at > SILENCE_LIMIT_S:
            return f"silent for {now - self._frame_at:.1f} s"
        if self._has_work and now - self._progress_at > self._stall_limit_s:
            return f"no step for {now - self._progress_at:.1f} s with work waiting"
        return None

    def _forgive_our_own_pause(self, now: float) -> None:
        pause = now - self._checked_at
        if pause > LATE_CHECK_S:
            self._frame_at += pause
            self._progress_at += pause
        self._checked_at = now
