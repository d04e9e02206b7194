"""When an engine counts as lost, with the clock in the test's hand."""

from fleet.liveness import Liveness


def checked(pulse: Liveness, start: float, end: float, *, has_requests: bool = True) -> str | None:
    """Check every tenth of a second, as the session does."""
    for tenth in range(round(start * 10), round(end * 10) + 1):
        if reason := pulse.loss(tenth / 10, has_requests):
            return reason
    return None


def test_frames_keep_it_alive() -> None:
    pulse = Liveness(now=0.0)
    for quarter in range(1, 20):
        pulse.frame(0, False, quarter / 4)
        assert checked(pulse, (quarter - 1) / 4, quarter / 4) is None


def test_a_second_of_silence_is_a_loss() -> None:
    pulse = Liveness(now=0.0)
    assert checked(pulse, 0.0, 1.0) is None
    assert "silent" in (checked(pulse, 1.0, 1.2) or "")


def test_steps_that_stand_still_are_a_loss_only_with_work_and_requests() -> None:
    for has_work, has_requests, is_lost in [(True, True, True), (True, False, False), (False, True, False)]:
        pulse = Liveness(now=0.0, stall_limit_s=1.0)
        reasons = []
        for tenth in range(1, 20):
            pulse.frame(7, has_work, tenth / 10)
            reasons.append(pulse.loss(tenth / 10, has_requests))
        assert any(reasons) is is_lost


def test_the_time_counts_from_the_first_request() -> None:
    pulse = Liveness(now=0.0, stall_limit_s=1.0)
    for tenth in range(1, 100):
        pulse.frame(7, True, tenth / 10)
        assert pulse.loss(tenth / 10, has_requests=tenth > 95) is None


def test_our_own_pause_is_not_the_engines_silence() -> None:
    pulse = Liveness(now=0.0)
    pulse.frame(1, True, 0.1)
    assert checked(pulse, 0.0, 0.1) is None
    assert pulse.loss(30.0, True) is None
    assert checked(pulse, 30.1, 30.8) is None
    assert checked(pulse, 30.9, 32.0) is not None
