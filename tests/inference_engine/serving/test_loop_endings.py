"""Every way a request ends in the loop: abort, close, deadline, failure, drain, a slow reader."""

import time

import pytest

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Finished
from inference_engine.contract.requests import Abort, Ping
from inference_engine.scheduling.step_plan import StepPlan, StepResult
from inference_engine.serving.inbox import StartDraining
from servers_of_tests import wait_until
from stand_ins.loop_under_test import CEILING_S, LoopUnderTest, StepGate, fake_runner, generate, running


@pytest.mark.parametrize("lag", [0, 1])
def test_an_abort_takes_effect_within_two_steps_and_frees_the_blocks(lag: int) -> None:
    gate = StepGate(fake_runner())
    with running(gate, lag=lag) as under_test:
        session = under_test.session()
        session.send(generate("r", prompt=100, max_tokens=100))
        gate.grant(3)
        session.wait_for(lambda _: session.tokens("r"), "the first token")
        wait_until(lambda: gate.num_begun == 4, "the next step began")
        session.send(Abort(request_id="r"))
        num_tokens = len(session.tokens("r"))
        gate.grant(2)
        session.wait_finished("r")
        finished = session.ending("r")
        assert isinstance(finished, Finished)
        assert (finished.reason, finished.code) == (FinishReason.ABORTED, Code.CLIENT_GONE)
        assert len(session.tokens("r")) <= num_tokens + 2
        under_test.wait_idle()
        assert gate.num_begun <= 6
        assert under_test.blocks_in_use() == 0


def test_another_session_can_t_abort_it_and_an_older_attempt_s_abort_is_dropped() -> None:
    with running() as under_test:
        session, other = under_test.session(), under_test.session()
        session.send(generate("r", attempt=1, max_tokens=400), Abort(request_id="r", attempt=0))
        other.send(Abort(request_id="r", attempt=1), Ping(nonce=3))
        session.wait_finished("r")
        finished = session.ending("r")
        assert isinstance(finished, Finished) and finished.reason is FinishReason.LENGTH


@pytest.mark.parametrize("lag", [0, 1])
def test_closing_a_session_aborts_all_that_came_over_it_and_names_the_orphans(lag: int) -> None:
    gate = StepGate(fake_runner())
    with running(gate, lag=lag) as under_test:
        session, other = under_test.session(), under_test.session()
        session.send(*(generate(f"r{i}", max_tokens=100, reservation_key=f"k{i}") for i in range(3)))
        other.send(generate("o", max_tokens=5))
        gate.grant(3)
        session.wait_for(lambda _: len(session.tokens("r0")) >= 2, "two tokens")
        wait_until(lambda: gate.num_begun == 4, "the next step began")
        session.close()
        gate.open()
        other.wait_finished("o")
        under_test.wait_idle()
        assert {orphan.reservation_key for orphan in under_test.orphans} == {"k0", "k1", "k2"}
        assert all(2 <= orphan.usage.output_tokens <= 4 for orphan in under_test.orphans)
        assert under_test.blocks_in_use() == 0
        assert under_test.loop.progress().stats.num_aborted == 3


def test_a_deadline_aborts_what_is_not_done_by_then() -> None:
    with running(fake_runner(speed=None)) as under_test:
        session = under_test.session()
        past = time.monotonic() - 10
        session.send(generate("late", max_tokens=400, deadline_ms=10_000), received_at=past)
        session.send(generate("fine", max_tokens=5, deadline_ms=600_000), received_at=time.monotonic())
        session.wait_finished("late", "fine")
        late, fine = session.ending("late"), session.ending("fine")
        assert isinstance(late, Finished) and isinstance(fine, Finished)
        assert (late.reason, late.code) == (FinishReason.ABORTED, Code.DEADLINE_EXCEEDED)
        assert fine.reason is FinishReason.LENGTH


def test_what_has_just_ended_is_an_orphan_too_when_its_session_closes() -> None:
    """Its gateway may have died between the last message and its settlement."""
    with running(fake_runner()) as under_test:
        session = under_test.session()
        session.send(generate("done", max_tokens=3, reservation_key="k"))
        session.wait_finished("done")
        session.close()
        wait_until(lambda: bool(under_test.orphans), "its usage is told")
        (orphan,) = under_test.orphans
        assert (orphan.reservation_key, orphan.usage.output_tokens) == ("k", 3)


class FailingRunner:
    """A fake whose steps with these numbers fail."""

    def __init__(self, *steps: int) -> None:
        self._runner = fake_runner()
        self._steps = steps
        self.num_blocks = self._runner.num_blocks
        self.num_run = 0

    def run(self, plan: StepPlan) -> StepResult:
        self.num_run += 1
        if self.num_run in self._steps:
            raise RuntimeError("the device is on fire")
        return self._runner.run(plan)


@pytest.mark.parametrize("lag", [0, 1])
def test_a_step_that_fails_ends_its_requests_and_the_next_ones_are_served(lag: int) -> None:
    with running(FailingRunner(3), lag=lag) as under_test:
        session = under_test.session()
        session.send(generate("r", max_tokens=20, prompt=40), generate("s", max_tokens=20))
        session.wait_finished("r", "s")
        for request_id in ("r", "s"):
            finished = session.ending(request_id)
            assert isinstance(finished, Finished)
            assert (finished.reason, finished.code) == (FinishReason.FAILED, Code.INTERNAL_ERROR)
        under_test.wait_idle()
        assert under_test.blocks_in_use() == 0
        session.send(generate("t", max_tokens=20, prompt=40))
        session.wait_finished("t")
        assert len(session.tokens("t")) == 20


@pytest.mark.parametrize("lag", [0, 1])
def test_a_runner_that_fails_again_and_again_is_given_up_and_its_requests_hear_of_it(lag: int) -> None:
    under_test = LoopUnderTest(FailingRunner(*range(2, 100)), lag=lag)
    session = under_test.session()
    under_test.start()
    session.send(generate("r"))
    session.wait_finished("r")
    under_test.wait_idle()
    session.send(generate("s"))
    session.wait_finished("s")
    session.send(generate("t"))  # the first failure took one step or two, by what was in flight
    wait_until(lambda: bool(under_test.deaths), "the loop gives up", CEILING_S)
    assert "the runner failed" in str(under_test.deaths[0])
    under_test.stop()


def test_a_loop_that_dies_says_so() -> None:
    under_test = LoopUnderTest()
    session = under_test.session()
    under_test.start()
    under_test.scheduler.kv.pool.num_blocks += 1  # an invariant is broken from here on
    session.send(generate("r"))
    wait_until(lambda: bool(under_test.deaths), "the loop reports its death", CEILING_S)
    under_test.stop()


def test_draining_refuses_new_requests_and_finishes_the_running_ones() -> None:
    gate = StepGate(fake_runner())
    with running(gate) as under_test:
        session = under_test.session()
        session.send(generate("r", max_tokens=5))
        wait_until(lambda: gate.num_begun == 1, "it runs")
        under_test.loop.inbox.put(StartDraining())
        session.send(generate("s"))
        gate.open()
        session.wait_finished("r", "s")
        refused = session.ending("s")
        assert refused is not None and refused.code is Code.DRAINING
        assert len(session.tokens("r")) == 5


def test_a_slow_reader_loses_its_requests_and_hears_why_while_others_go_on() -> None:
    with running() as under_test:
        slow, quick = under_test.session(max_frames=10), under_test.session()
        quick.send(generate("q", max_tokens=100, prompt=20))
        slow.send(generate("a", max_tokens=400), generate("b", max_tokens=400))
        quick.wait_finished("q")
        under_test.wait_idle()
        assert len(slow.outbox) <= 13
        for request_id in ("a", "b"):
            finished = slow.ending(request_id)
            assert isinstance(finished, Finished)
            assert (finished.reason, finished.code) == (FinishReason.FAILED, Code.SLOW_READER)
            assert len(slow.tokens(request_id)) == finished.usage.output_tokens < 400
        assert len(quick.tokens("q")) == 100
        slow.send(generate("again", max_tokens=5))
        slow.wait_finished("again")
        assert len(slow.tokens("again")) == 5


@pytest.mark.parametrize("lag", [0, 1])
def test_a_hundred_requests_cancelled_in_every_phase_leave_no_block_behind(lag: int) -> None:
    """CASES 21: queued, prefilling and decoding ones, by Abort and by the end of the session."""
    gate = StepGate(fake_runner(256))
    with running(gate, num_blocks=256, lag=lag, max_running=24, prefill_budget=64) as under_test:
        survivor = under_test.session()
        for round_number in range(6):
            first = gate.num_begun + 1
            survivor.send(generate(f"live{round_number}", max_tokens=30))
            wait_until(lambda at=first: gate.num_begun == at, "it runs", CEILING_S)
            session = under_test.session()
            ids = [f"r{round_number}.{i}" for i in range(100)]
            session.send(*(generate(each, prompt=5 + 3 * i, max_tokens=100) for i, each in enumerate(ids)))
            gate.grant(1 + round_number)
            wait_until(lambda at=first + 1 + round_number: gate.num_begun == at, "steps pass", CEILING_S)
            session.send(*(Abort(request_id=each) for each in ids[::2]))
            session.close()
            gate.open()
            survivor.wait_finished(f"live{round_number}")
            under_test.wait_idle()
            gate.shut()
            assert under_test.blocks_in_use() == 0
            assert len(survivor.tokens(f"live{round_number}")) == 30
        stats = under_test.loop.progress().stats
        assert (stats.num_accepted, stats.num_aborted, stats.num_finished) == (606, 600, 6)


def test_messages_for_a_closed_session_are_dropped_and_no_one_else_s() -> None:
    with running() as under_test:
        session, other = under_test.session(), under_test.session()
        session.close()
        session.send(generate("r"))
        other.send(generate("s"))
        other.wait_finished("s")
        assert session.read() == []
        assert under_test.loop.progress().stats.num_accepted == 1
