"""Turns among tenants, bounds, cancellation and the end, with work that the test holds back."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import pytest

from inference_engine.constraints.fair_threads import FairThreads, TooMuchWork

CEILING_S = 30


class Gates:
    """Work that waits to be let go, and the order in which it began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._began = threading.Condition()
        self._open = threading.Event()

    def work(self, name: str) -> Callable[[], str]:
        def run() -> str:
            with self._began:
                self.begun.append(name)
                self._began.notify_all()
            assert self._open.wait(CEILING_S)
            return name

        return run

    def wait_for(self, count: int) -> None:
        with self._began:
            assert self._began.wait_for(lambda: len(self.begun) >= count, CEILING_S)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def make_threads(gates: Gates) -> Iterator[Callable[..., FairThreads]]:
    made: list[FairThreads] = []

    def make(count: int, **limits: int) -> FairThreads:
        made.append(FairThreads(count, **{"max_waiting": 100, "max_waiting_each": 50, **limits}, name="test"))
        return made[-1]

    yield make
    gates.open()
    for threads in made:
        threads.close()


def test_tenants_take_turns_and_each_tenant_s_own_keep_their_order(gates, make_threads) -> None:
    threads = make_threads(1)
    first = threads.submit("x", gates.work("x"))
    gates.wait_for(1)
    names = ["a0", "a1", "a2", "a3", "b0", "b1", "c0"]
    futures = [threads.submit(name[0], gates.work(name)) for name in names]
    gates.open()
    assert [future.result(CEILING_S) for future in (first, *futures)] == ["x", *names]
    assert gates.begun == ["x", "a0", "b0", "c0", "a1", "b1", "a2", "a3"]


def test_one_thread_is_left_to_whoever_comes_next(gates, make_threads) -> None:
    threads = make_threads(3)
    for number in range(6):
        threads.submit("flood", gates.work(f"flood{number}"))
    gates.wait_for(2)
    threads.submit("bob", gates.work("bob"))
    gates.wait_for(3)
    assert sorted(gates.begun[:2]) == ["flood0", "flood1"] and gates.begun[2] == "bob"
    assert len(threads) == 4


def test_a_tenant_s_bound_and_that_of_all(gates, make_threads) -> None:
    threads = make_threads(1, max_waiting=3, max_waiting_each=2)
    threads.submit("x", gates.work("x"))
    gates.wait_for(1)
    for _ in range(2):
        threads.submit("a", gates.work("a"))
    with pytest.raises(TooMuchWork):
        threads.submit("a", gates.work("a"))
    threads.submit("b", gates.work("b"))
    with pytest.raises(TooMuchWork):
        threads.submit("c", gates.work("c"))


def test_what_is_cancelled_while_it_waits_leaves_its_place_at_once(gates, make_threads) -> None:
    threads = make_threads(1, max_waiting=1)
    threads.submit("x", gates.work("x"))
    gates.wait_for(1)
    for _ in range(5):
        future = threads.submit("a", gates.work("a"))
        assert future.cancel() and len(threads) == 0
    last = threads.submit("a", gates.work("last"))
    gates.open()
    assert last.result(CEILING_S) == "last"
    assert gates.begun == ["x", "last"]


def test_work_that_raises_ends_its_own_future_and_no_thread(make_threads) -> None:
    threads = make_threads(1)
    failing = threads.submit("a", lambda: 1 // 0)
    assert isinstance(failing.exception(CEILING_S), ZeroDivisionError)
    assert threads.submit("a", lambda: 7).result(CEILING_S) == 7


def test_closing_cancels_what_waits_and_waits_for_what_runs(gates, make_threads) -> None:
    threads = make_threads(1)
    running, waiting = threads.submit("a", gates.work("a")), threads.submit("a", gates.work("b"))
    gates.wait_for(1)
    closing = threading.Thread(target=threads.close)
    closing.start()
    with pytest.raises(CancelledError):
        waiting.result(CEILING_S)
    gates.open()
    closing.join(CEILING_S)
    assert not closing.is_alive()
    assert running.result(0) == "a" and waiting.cancelled()
