"""What is remembered of requests: attempts, sessions, deadlines, and endings for a while."""

from inference_engine.scheduling.request import Request
from inference_engine.serving.live_requests import UNHEARD_S, LiveRequest, LiveRequests
from stand_ins.loop_under_test import generate


def add(
    live: LiveRequests,
    request_id: str,
    *,
    session_id: int = 1,
    attempt: int = 0,
    reservation_key: str = "",
    **fields: int,
) -> LiveRequest:
    message = generate(request_id, attempt=attempt, **fields)
    request = Request(message, arrival=1, max_tokens=8, end_ids=frozenset())
    one = LiveRequest(request, session_id, reservation_key, received_at=100.0)
    live.add(one, message)
    return one


def test_a_request_is_found_by_its_attempt_and_by_its_session() -> None:
    live = LiveRequests()
    one, other = add(live, "a", attempt=2), add(live, "b", session_id=2)
    assert live.find("a", 2) is one and live.find("a", 1) is None and live.get("a") is one
    assert live.of_session(1) == [one] and live.of_session(2) == [other] and live.of_session(3) == []
    live.remove(one)
    assert live.get("a") is None and live.of_session(1) == [] and len(live) == 1


def test_deadlines_come_due_in_order_and_only_for_what_still_lives() -> None:
    live = LiveRequests()
    late, soon, gone = (
        add(live, "late", deadline_ms=9000),
        add(live, "soon", deadline_ms=1000),
        add(live, "gone", deadline_ms=500),
    )
    live.remove(gone)
    assert live.pop_expired(100.9) == []
    assert live.pop_expired(101.0) == [soon]
    assert live.pop_expired(200.0) == [late]
    assert live.pop_expired(300.0) == []


def test_deadlines_of_what_has_ended_do_not_pile_up() -> None:
    live = LiveRequests()
    kept = add(live, "kept", deadline_ms=900_000)
    for number in range(1_000):
        live.remove(add(live, f"r{number}", deadline_ms=600_000))
    assert len(live._deadlines) <= 2
    assert live.pop_expired(1_000.0) == [kept]
    live.remove(kept)
    assert live._deadlines == []


def test_endings_are_remembered_for_as_many_requests_as_told() -> None:
    live = LiveRequests(remembered=2)
    for request_id in ("a", "b", "c"):
        live.remove(add(live, request_id, attempt=1))
    assert not live.has_ended("a", 1)
    assert live.has_ended("b", 1) and live.has_ended("c", 0) and not live.has_ended("c", 2)


def test_the_timeline_counts_from_receipt() -> None:
    one = add(LiveRequests(), "a")
    assert one.timeline(100.5).queued_ms == one.timeline(100.5).finished_ms == 500.0
    assert one.timeline(100.5).first_token_ms is None
    one.started_at, one.first_token_at = 100.25, 100.375
    timeline = one.timeline(101.0)
    assert (timeline.queued_ms, timeline.first_token_ms, timeline.finished_ms) == (250.0, 375.0, 1000.0)


def test_endings_count_as_unheard_for_a_while() -> None:
    live = LiveRequests()
    one, other = add(live, "a", reservation_key="r1"), add(live, "b", reservation_key="r2")
    elsewhere = add(live, "c", session_id=2, reservation_key="r3")
    for number, each in enumerate((one, other, elsewhere)):
        live.note_end(each, 100.0 + number)
    forgotten = 100.0 + UNHEARD_S
    assert live.ended_lately(1, forgotten - 0.5) == [one.orphan(), other.orphan()]
    assert live.ended_lately(1, forgotten + 0.5) == [other.orphan()]
    assert live.ended_lately(2, forgotten + 1.9) == [elsewhere.orphan()]
    assert live.ended_lately(2, forgotten + 2.1) == []


def test_an_ending_that_nobody_reserved_for_is_not_remembered() -> None:
    live = LiveRequests()
    live.note_end(add(live, "a"), 100.0)
    assert live.ended_lately(1, 100.0) == []
