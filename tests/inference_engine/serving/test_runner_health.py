"""When a failing runner is given up: not for one bad batch, whatever the lag, but if it fails without it."""

import pytest

from inference_engine.serving.runner_health import MAX_EMPTY_TURNS, EngineBroken, RunnerHealth


def test_a_failure_with_the_next_step_already_in_flight_is_one_failure() -> None:
    health = RunnerHealth()
    health.planned(7)
    health.planned(8)
    assert not health.failed(7)
    assert not health.failed(8)
    health.planned(9)
    assert health.failed(9)


def test_a_good_step_in_between_forgives() -> None:
    health = RunnerHealth()
    for step in (1, 3, 5):
        health.planned(step)
        assert not health.failed(step)
        health.planned(step + 1)
        health.succeeded()


def test_turns_that_schedule_nothing_are_only_bearable_for_a_moment() -> None:
    health = RunnerHealth()
    for _ in range(3):
        for _ in range(MAX_EMPTY_TURNS):
            health.check_moving(False)
        health.check_moving(True)
    with pytest.raises(EngineBroken):
        for _ in range(MAX_EMPTY_TURNS + 1):
            health.check_moving(False)
