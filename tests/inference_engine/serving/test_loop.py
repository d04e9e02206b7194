"""The batching loop with the real scheduler: every kind of ending, both lags, nothing lost, nothing left."""

import pytest

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Finished, Pong, StepObserved
from inference_engine.contract.requests import Observe, Ping, SetTenantShares, TenantShare
from inference_engine.serving.mail import Mail
from inference_engine.serving.outbox import Outbox
from servers_of_tests import wait_until
from stand_ins.loop_under_test import StepGate, fake_runner, generate, running
from stand_ins.tiny_model import END_ID


@pytest.mark.parametrize("lag", [0, 1])
def test_tokens_are_the_same_alone_and_in_a_batch_and_with_either_lag(lag: int) -> None:
    with running() as alone:
        session = alone.session()
        session.send(generate("r", max_tokens=20))
        session.wait_finished("r")
        expected = session.tokens("r")
    with running(lag=lag) as batched:
        session = batched.session()
        session.send(*(generate(f"n{i}", prompt=50 + i, seed=i) for i in range(5)))
        session.send(generate("r", max_tokens=20))
        session.wait_finished("r", *(f"n{i}" for i in range(5)))
        assert session.tokens("r") == expected
        assert len(set(expected)) > 10


@pytest.mark.parametrize("lag", [0, 1])
def test_accepted_comes_first_then_contiguous_deltas_then_finished_with_exact_usage(lag: int) -> None:
    with running(lag=lag) as under_test:
        session = under_test.session()
        session.send(generate("r", prompt=40, max_tokens=9))
        session.wait_finished("r")
        kinds = [type(message) for message in session.messages]
        assert kinds == [Accepted] + [Delta] * 9 + [Finished]
        finished = session.ending("r")
        assert isinstance(finished, Finished) and finished.reason is FinishReason.LENGTH
        assert (finished.usage.prompt_tokens, finished.usage.output_tokens) == (40, 9)
        assert finished.timeline.num_chunks == 9


@pytest.mark.parametrize(("max_tokens", "sizes"), [(1, [1]), (9, [1, 4, 4]), (11, [1, 4, 4, 2])])
def test_deltas_of_several_tokens_carry_the_same_ones(max_tokens: int, sizes: list[int]) -> None:
    with running() as under_test:
        session = under_test.session()
        session.send(generate("plain", max_tokens=max_tokens, logprobs=1))
        session.send(generate("r", max_tokens=max_tokens, logprobs=1, tokens_per_delta=4))
        session.wait_finished("plain", "r")
        deltas = [each for each in session.messages if isinstance(each, Delta)]
        gathered = [delta for delta in deltas if delta.request_id == "r"]
        assert [len(delta.token_ids) for delta in gathered] == sizes
        assert [len(delta.logprobs or []) for delta in gathered] == sizes
        assert session.tokens("r") == session.tokens("plain")


def test_an_end_brings_what_had_been_gathered() -> None:
    with running(fake_runner(end_id=END_ID, end_after=7)) as under_test:
        session = under_test.session()
        session.send(generate("r", max_tokens=50, tokens_per_delta=5))
        session.wait_finished("r")
        kinds = [type(message) for message in session.messages]
        assert kinds == [Accepted, Delta, Delta, Delta, Finished]
        assert len(session.tokens("r")) == 7


@pytest.mark.parametrize("lag", [0, 1])
def test_an_end_id_ends_the_request_and_is_named_but_not_sent(lag: int) -> None:
    runner = fake_runner(end_id=END_ID, end_after=3)
    with running(runner, lag=lag) as under_test:
        session = under_test.session()
        session.send(generate("r", max_tokens=50), generate("s", max_tokens=6, ignore_eos=True))
        session.wait_finished("r", "s")
        finished = session.ending("r")
        assert isinstance(finished, Finished)
        assert (finished.reason, finished.stop_token_id) == (FinishReason.STOP, END_ID)
        assert len(session.tokens("r")) == 3 == finished.usage.output_tokens
        assert session.tokens("s")[3:] == [END_ID] * 3


def test_one_batch_a_step_and_session_carries_all_its_deltas() -> None:
    gate = StepGate(fake_runner())
    with running(gate) as under_test:
        first, session, other = (under_test.session() for _ in range(3))
        first.send(generate("first", max_tokens=1))
        wait_until(lambda: gate.num_begun == 1, "a step began")
        session.send(generate("a"), generate("b"))
        other.send(generate("c"))
        gate.grant(3)
        session.wait_for(lambda _: len(session.steps) >= 2, "two steps were sent")
        assert [type(m) for m in session.messages] == [Accepted, Accepted, Delta, Delta, Delta, Delta]
        assert session.steps == [2, 3]
        other.wait_for(lambda _: len(other.steps) >= 2, "two steps were sent")
        assert [type(m) for m in other.messages] == [Accepted, Delta, Delta]
        wait_until(lambda: gate.num_begun == 4, "the next step began")
        assert under_test.num_wakes == 3


def test_a_duplicate_is_refused_while_it_runs_and_after_it_has_ended() -> None:
    gate = StepGate(fake_runner())
    with running(gate) as under_test:
        session, other = under_test.session(), under_test.session()
        session.send(generate("r", max_tokens=2, attempt=1))
        wait_until(lambda: gate.num_begun == 1, "it runs")
        other.send(generate("r", attempt=1))
        gate.open()
        other.wait_finished("r")
        session.wait_finished("r")
        late = under_test.session()
        late.send(generate("r", attempt=0))
        late.wait_finished("r")
        for refused in (other.ending("r"), late.ending("r")):
            assert refused is not None and refused.code is Code.DUPLICATE_REQUEST
        under_test.wait_idle()
        assert under_test.loop.progress().stats.num_refused == 2
        assert len(session.tokens("r")) == 2


def test_a_newer_attempt_replaces_the_older_one_and_nothing_more_is_sent_for_that() -> None:
    gate = StepGate(fake_runner())
    with running(gate) as under_test:
        old, new = under_test.session(), under_test.session()
        old.send(generate("r", max_tokens=50, reservation_key="k"))
        gate.grant(2)
        old.wait_for(lambda _: len(old.tokens("r")) == 2, "two tokens")
        emitted = old.tokens("r")
        wait_until(lambda: gate.num_begun == 3, "the next step began")
        new.send(generate("r", attempt=1, max_tokens=50, output_ids=emitted, reservation_key="k"))
        gate.open()
        new.wait_finished("r")
        finished = new.ending("r")
        assert isinstance(finished, Finished) and finished.attempt == 1
        assert finished.usage.output_tokens == 50 and len(new.tokens("r")) == 48
        assert len(old.tokens("r")) <= 3 and old.ending("r") is None
        solo = under_test.session()
        solo.send(generate("solo", max_tokens=50))
        solo.wait_finished("solo")
        assert emitted + new.tokens("r") == solo.tokens("solo")


def test_a_stalled_loop_has_work_and_its_step_stands_still() -> None:
    gate = StepGate(fake_runner())
    with running(gate) as under_test:
        assert not under_test.loop.progress().has_work
        session = under_test.session()
        under_test.wait_idle()
        session.send(generate("r"))
        assert under_test.loop.progress().has_work
        wait_until(lambda: gate.num_begun == 1, "the step began")
        session.send(generate("s"))
        progress = under_test.loop.progress()
        assert (progress.step, progress.has_work) == (0, True)
        gate.open()
        session.wait_finished("r", "s")


def test_whoever_has_a_message_finds_figures_that_know_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a frame of its own, written meanwhile, would go back to the step before."""
    send = Mail.send
    found: list[tuple[int, int, int]] = []

    with running() as under_test:

        def send_and_look(mail: Mail, step: int, has_work: bool) -> list[Outbox]:
            outboxes = send(mail, step, has_work)
            progress = under_test.loop.progress()
            found.append((step, progress.step, progress.stats.output_tokens))
            assert progress.has_work or not outboxes
            return outboxes

        monkeypatch.setattr(Mail, "send", send_and_look)
        session = under_test.session()
        session.send(generate("r", max_tokens=3))
        session.wait_finished("r")
        under_test.wait_idle()
        assert found[-3:] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_an_observer_sees_every_nth_step_and_who_holds_the_blocks() -> None:
    with running() as under_test:
        session = under_test.session()
        session.send(Observe(every=2), generate("r", prompt=40, max_tokens=10, tenant_id="bob"))
        session.wait_finished("r")
        session.send(Observe(every=0), generate("s", max_tokens=10))
        session.wait_finished("s")
        observed = [m for m in session.messages if isinstance(m, StepObserved)]
        assert [each.step for each in observed] == [2, 4, 6, 8, 10]
        assert observed[0].rows[0].request_id == "r"
        assert observed[0].blocks_by_tenant == {"bob": 3}


def test_pings_are_answered_by_the_loop_itself() -> None:
    with running() as under_test:
        session = under_test.session()
        session.send(generate("r", max_tokens=5))
        session.wait_finished("r")
        session.send(Ping(nonce=9))
        session.wait_for(lambda messages: Pong(nonce=9, step=5) in messages, "the pong")


def test_tenant_shares_reach_the_scheduler() -> None:
    gate = StepGate(fake_runner())
    with running(gate, max_running=1) as under_test:
        session = under_test.session()
        session.send(generate("first"))
        wait_until(lambda: gate.num_begun == 1, "it runs")
        session.send(SetTenantShares(shares={"alice": TenantShare(max_queued_requests=1)}))
        session.send(generate("second"), generate("third"))
        gate.open()
        session.wait_finished("first", "second", "third")
        refused = session.ending("third")
        assert refused is not None and refused.code is Code.QUEUE_FULL


def test_what_can_never_fit_the_pool_is_refused_and_short_ones_are_served() -> None:
    """CASES 19."""
    with running(fake_runner(8), num_blocks=8) as under_test:
        session = under_test.session()
        session.send(generate("big", prompt=200), *(generate(f"s{i}", max_tokens=5) for i in range(5)))
        session.wait_finished("big", *(f"s{i}" for i in range(5)))
        refused = session.ending("big")
        assert refused is not None and refused.code is Code.KV_POOL_EXCEEDED
        assert all(len(session.tokens(f"s{i}")) == 5 for i in range(5))


@pytest.mark.parametrize("lag", [0, 1])
def test_a_preempted_request_goes_on_as_if_nothing_had_happened(lag: int) -> None:
    with running() as roomy:
        session = roomy.session()
        session.send(*(generate(f"r{i}", prompt=40, max_tokens=60, seed=i) for i in range(2)))
        session.wait_finished("r0", "r1")
        expected = [session.tokens(f"r{i}") for i in range(2)]
    with running(fake_runner(10), num_blocks=10, lag=lag) as tight:
        session = tight.session()
        session.send(*(generate(f"r{i}", prompt=40, max_tokens=60, seed=i) for i in range(2)))
        session.wait_finished("r0", "r1")
        assert tight.loop.progress().stats.num_preemptions > 0
        assert [session.tokens(f"r{i}") for i in range(2)] == expected
