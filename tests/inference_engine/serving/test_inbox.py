"""Commands from any thread: in order, none lost, none in hand that the loop does not know of."""

import pytest

from inference_engine.serving.inbox import Inbox, Received
from inference_engine.serving.loop import EngineLoop
from stand_ins.loop_under_test import generate, running


def received(number: int) -> Received:
    return Received(number, generate(), 0.0)


def test_what_comes_after_the_count_is_left_and_nobody_sleeps_over_it() -> None:
    inbox = Inbox()
    inbox.put(received(1), received(2))
    inbox.put(received(3))
    assert [each.session_id for each in inbox.take(2)] == [1, 2]
    inbox.wait()
    assert [each.session_id for each in inbox.take(1)] == [3]
    assert not len(inbox)
    inbox.wait(0)


def test_a_request_that_comes_just_after_the_count_never_looks_like_idleness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drain would end with it in hand."""
    late = [generate("late")]
    looked_busy: list[bool] = []
    take, obey = Inbox.take, EngineLoop._obey_gateway

    def take_late(inbox: Inbox, *arguments: int) -> list[object]:
        if late:
            inbox.put(Received(session.outbox.session_id, late.pop(), 0.0))
        return take(inbox, *arguments)

    def obey_and_look(loop: EngineLoop, *arguments: object) -> None:
        looked_busy.append(loop.progress().has_work)
        obey(loop, *arguments)

    with running() as under_test:
        session = under_test.session()
        under_test.wait_idle()
        monkeypatch.setattr(Inbox, "take", take_late)
        monkeypatch.setattr(EngineLoop, "_obey_gateway", obey_and_look)
        under_test.loop.inbox.put()
        session.wait_finished("late")
        assert looked_busy == [True]
