"""When failing steps mean that only a new process can help."""


class EngineBroken(RuntimeError):
    """Steps fail one after another, or work waits that no step can be planned for."""


MAX_EMPTY_TURNS = 2


class RunnerHealth:
    def __init__(self) -> None:
        self._last_planned = 0
        self._failing_until: int | None = None
        self._num_empty_turns = 0

    def planned(self, step: int) -> None:
        self._last_planned = step

    def succeeded(self) -> None:
        self._failing_until = None

    def failed(self, step: int) -> bool:
        """Returns whether the runner is broken: the step was planned when an earlier failure was known, so it
        had none of the requests that took part in that."""
        if self._failing_until is None:
            self._failing_until = self._last_planned
            return False
        return step > self._failing_until

    def check_moving(self, has_moved: bool) -> None:
        """One plan may only have made room; several that schedule nothing mean that none ever will."""
        self._num_empty_turns = 0 if has_moved else self._num_empty_turns + 1
        if self._num_empty_turns > MAX_EMPTY_TURNS:
            raise EngineBroken("work waits, yet no step can be planned")
