"""Progress lines: every stage and its end, not every step."""

from structlog.testing import capture_logs

from inference_engine.serving.logs import ProgressLog


def test_each_stage_and_its_end_are_logged_and_steps_at_most_twice_a_second() -> None:
    now = 0.0
    with capture_logs() as lines:
        progress = ProgressLog(lambda: now)
        progress("loading", 0, 0)
        for done in range(1, 101):
            now = done / 100
            progress("warming", done, 100)
    shown = [(line["stage"], line.get("done")) for line in lines]
    assert shown == [("loading", None), ("warming", 1), ("warming", 51), ("warming", 100)]
