"""Requests whose constraints are being compiled: every way on from there, with a compiler that waits for the
test, and with the real one."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from inference_engine.constraints.compiling import Compiler
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import load_vocabulary
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Delta, Finished, Refused
from inference_engine.contract.requests import Abort, Constraint, ConstraintKind, Generate, Ping
from inference_engine.serving.inbox import StartDraining
from servers_of_tests import wait_until
from stand_ins.loop_under_test import CEILING_S, SessionUnderTest, generate, running
from stand_ins.tiny_model import END_ID, VOCAB_SIZE
from stand_ins.tiny_text import byte_level_tokenizer

ANY_OBJECT = Constraint(kind=ConstraintKind.JSON_OBJECT)


class FollowsAnything:
    num_consumed = 0

    def fill(self, row: Any) -> None: ...

    def advance(self, token_id: int) -> None: ...

    def roll_back(self, num_tokens: int) -> None: ...


class HeldCompiler:
    """Compiles what the test says, when it says so."""

    def __init__(self) -> None:
        self.asked: list[Generate] = []
        self.futures: list[Future[Any]] = []

    def compile(self, generate: Generate) -> "Future[Any]":
        self.asked.append(generate)
        self.futures.append(Future())
        return self.futures[-1]

    def wait_asked(self, count: int = 1) -> None:
        wait_until(lambda: len(self.futures) == count, f"{count} constraints", CEILING_S)

    def succeed(self, index: int = 0) -> None:
        if self.futures[index].set_running_or_notify_cancel():
            self.futures[index].set_result(FollowsAnything())

    def fail(self, error: Exception, index: int = 0) -> None:
        self.futures[index].set_exception(error)


def constrained(request_id: str = "r", **fields: Any) -> Generate:
    return generate(request_id, constraint=ANY_OBJECT, **fields)


def refused(session: SessionUnderTest, request_id: str = "r") -> Refused:
    session.wait_finished(request_id)
    ending = session.ending(request_id)
    assert isinstance(ending, Refused)
    return ending


def test_others_are_served_while_a_constraint_is_compiled_and_nothing_looks_stalled() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained(), generate("free"))
        session.wait_finished("free")
        under_test.wait_idle()
        progress = under_test.loop.progress()
        assert (progress.has_work, progress.num_compiling) == (False, 1)
        assert not session.about("r", Delta) and session.accepted("r") is None
        compiler.succeed()
        session.wait_finished("r")
        assert isinstance(session.ending("r"), Finished) and len(session.tokens("r")) == 8
        under_test.wait_idle()
        assert under_test.loop.progress().num_compiling == 0


def test_an_error_refuses_with_its_own_code_message_and_param() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained("bad"), constrained("broken"), constrained("good"))
        compiler.wait_asked(3)
        compiler.fail(ConstraintError("no such type", param="constraint"))
        compiler.fail(RuntimeError("a secret"), 1)
        compiler.succeed(2)
        bad, broken = refused(session, "bad"), refused(session, "broken")
        assert (bad.code, bad.message, bad.param) == (Code.INVALID_REQUEST, "no such type", "constraint")
        assert (broken.code, broken.message) == (Code.INTERNAL_ERROR, "")
        session.wait_finished("good")
        assert isinstance(session.ending("good"), Finished)
        under_test.wait_idle()
        assert under_test.loop.progress().stats.num_refused == 2


def test_an_abort_reaches_what_is_being_compiled() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session, other = under_test.session(), under_test.session()
        session.send(constrained(attempt=1), Abort(request_id="r", attempt=0))
        other.send(Abort(request_id="r", attempt=1), Ping(nonce=1))
        other.wait_for(lambda messages: messages, "the pong")
        under_test.wait_idle()
        assert under_test.loop.progress().num_compiling == 1
        session.send(Abort(request_id="r", attempt=1))
        assert refused(session).code is Code.CLIENT_GONE
        assert compiler.futures[0].cancelled()
        under_test.wait_idle()
        assert under_test.scheduler.stats().num_accepted == 0


def test_a_compilation_that_can_t_be_stopped_comes_to_nothing_after_an_abort() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained())
        compiler.wait_asked()
        assert compiler.futures[0].set_running_or_notify_cancel()
        session.send(Abort(request_id="r"))
        assert refused(session).code is Code.CLIENT_GONE
        compiler.futures[0].set_result(FollowsAnything())
        session.send(generate("next"))
        session.wait_finished("next")
        assert under_test.scheduler.stats().num_accepted == 1


def test_closing_the_session_drops_what_is_being_compiled() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session, other = under_test.session(), under_test.session()
        session.send(constrained(reservation_key="k"))
        compiler.wait_asked()
        session.close()
        wait_until(compiler.futures[0].cancelled, "dropped", CEILING_S)
        other.send(constrained("r"))
        compiler.wait_asked(2)
        compiler.succeed(1)
        other.wait_finished("r")
        assert isinstance(other.ending("r"), Finished)
        assert under_test.orphans == []


def test_a_deadline_passes_while_the_loop_has_nothing_else_to_do() -> None:
    with running(compiler=HeldCompiler()) as under_test:
        session = under_test.session()
        session.send(constrained(deadline_ms=50), received_at=time.monotonic())
        assert refused(session).code is Code.DEADLINE_EXCEEDED


def test_a_newer_attempt_replaces_one_that_is_being_compiled() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained(attempt=1), constrained(attempt=2), constrained(attempt=1))
        compiler.wait_asked(2)
        session.wait_for(lambda _: session.about("r", Refused), "the old attempt is refused")
        assert [(each.attempt, each.code) for each in session.about("r", Refused)] == [
            (1, Code.DUPLICATE_REQUEST)
        ]
        assert compiler.futures[0].cancelled()
        compiler.succeed(1)
        session.wait_for(lambda _: session.about("r", Finished), "the new one ends")
        assert session.about("r", Finished)[0].attempt == 2


def test_what_can_t_be_served_anyway_is_not_compiled() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained(prompt=[10**6]))
        assert refused(session).code is Code.TOKEN_ID_OUT_OF_RANGE
        assert compiler.asked == []


def test_draining_lets_what_is_being_compiled_go_on_and_refuses_others() -> None:
    compiler = HeldCompiler()
    with running(compiler=compiler) as under_test:
        session = under_test.session()
        session.send(constrained())
        compiler.wait_asked()
        under_test.loop.inbox.put(StartDraining())
        session.send(constrained("late"))
        assert refused(session, "late").code is Code.DRAINING
        assert under_test.loop.progress().num_compiling == 1
        compiler.succeed()
        session.wait_finished("r")
        assert isinstance(session.ending("r"), Finished)


def test_without_a_compiler_constraints_are_refused_by_name() -> None:
    with running() as under_test:
        session = under_test.session()
        session.send(constrained())
        ending = refused(session)
        assert (ending.code, ending.param) == (Code.UNSUPPORTED_FEATURE, "constraint")
        assert "json_object" in ending.message


@pytest.fixture
def compiler() -> Iterator[Compiler]:
    vocabulary = load_vocabulary(byte_level_tokenizer(), vocab_size=VOCAB_SIZE, end_ids=[END_ID])
    compiler = Compiler(vocabulary, num_threads=1, clock=lambda: 0.0)  # nobody waits too long
    yield compiler
    compiler.close()


def test_the_real_compiler_fails_a_bad_grammar_alone_and_follows_replayed_tokens(compiler: Compiler) -> None:
    matchers: list[Matcher] = []
    compile_: Callable[[Generate], Future[Matcher]] = compiler.compile

    class Kept:
        def compile(self, generate: Generate) -> "Future[Matcher]":
            future = compile_(generate)
            future.add_done_callback(lambda done: done.exception() or matchers.append(done.result()))
            return future

    replayed = list(b'{"a')
    with running(compiler=Kept()) as under_test:
        session = under_test.session()
        bad = Constraint(kind=ConstraintKind.JSON_SCHEMA, source='{"type": "hiccup"}')
        session.send(generate("bad", constraint=bad), constrained("eos", ignore_eos=True))
        session.send(constrained("replayed", output_ids=replayed))
        session.send(constrained("mismatch", output_ids=list(b"[1")), generate("free"))
        session.wait_finished("bad", "eos", "replayed", "mismatch", "free")
        assert refused(session, "bad").param == "constraint" and "hiccup" in refused(session, "bad").message
        assert refused(session, "eos").param == "ignore_eos"
        assert refused(session, "mismatch").param == "output_ids"
        ending = session.ending("free")
        assert isinstance(ending, Finished) and ending.reason is FinishReason.LENGTH
    assert [matcher.num_consumed for matcher in matchers] == [len(replayed)]
