"""Threads that work for tenants in turn: one who asks a hundred times delays another by one piece of work.

A tenant's own pieces are done in the order they came. Where there are several threads a tenant has all but
one of them at most, so that whoever comes next finds one free however slow the others' work is.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

Job = tuple["Future[Any]", Callable[[], Any]]


class TooMuchWork(RuntimeError):
    """More waits than may wait."""


class FairThreads:
    def __init__(
        self,
        num_threads: int,
        *,
        max_waiting: int,
        max_waiting_each: int,
        name: str,
        initializer: Callable[[], None] = lambda: None,
    ) -> None:
        """`max_waiting`: of all tenants; `max_waiting_each`: of one."""
        self._max_waiting = max_waiting
        self._max_waiting_each = max_waiting_each
        self._max_threads_each = max(1, num_threads - 1)
        self._initializer = initializer
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        """By tenant, the one first whose turn is next. A tenant is in it while something of it waits."""
        self._num_waiting = 0
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(num_threads)
        ]
        self._is_started = False

    def submit(self, tenant_id: str, work: Callable[[], ResultT]) -> "Future[ResultT]":
        """Raises TooMuchWork."""
        future: Future[ResultT] = Future()
        job: Job = (future, work)
        with self._changed:
            self._start()
            own = self._waiting.get(tenant_id, ())
            if len(own) >= self._max_waiting_each or self._num_waiting >= self._max_waiting:
                raise TooMuchWork
            self._waiting.setdefault(tenant_id, deque()).append(job)
            self._num_waiting += 1
            self._changed.notify()
        future.add_done_callback(partial(self._forget, tenant_id, job))
        return future

    def close(self) -> None:
        """What waits is cancelled, what runs is waited for."""
        with self._changed:
            self._is_closed = True
            waiting = [future for jobs in self._waiting.values() for future, _ in jobs]
            self._changed.notify_all()
        for future in waiting:
            future.cancel()
        for thread in self._threads if self._is_started else ():
            thread.join()

    def __len__(self) -> int:
        """Pieces of work that wait."""
        return self._num_waiting

    def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            for thread in self._threads:
                thread.start()

    def _forget(self, tenant_id: str, job: Job, _: "Future[Any]") -> None:
        """One that is cancelled while it waits doesn't wait any more."""
        with self._changed:
            if job in self._waiting.get(tenant_id, ()):
                self._remove(tenant_id, job)

    def _remove(self, tenant_id: str, job: Job) -> None:
        jobs = self._waiting[tenant_id]
        jobs.remove(job)
        self._num_waiting -= 1
        if not jobs:
            del self._waiting[tenant_id]

    def _work(self) -> None:
        self._initializer()
        while (taken := self._take()) is not None:
            tenant_id, (future, work) = taken
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            with self._changed:
                self._running[tenant_id] -= 1
                if not self._running[tenant_id]:
                    del self._running[tenant_id]
                self._changed.notify_all()

    def _take(self) -> tuple[str, Job] | None:
        """Waits for one that may run. None: closed."""
        with self._changed:
            while True:
                tenant_id = self._next_tenant()
                if self._is_closed:
                    return None
                if tenant_id is not None:
                    break
                self._changed.wait()
            job = self._waiting[tenant_id][0]
            self._remove(tenant_id, job)
            if tenant_id in self._waiting:
                self._waiting.move_to_end(tenant_id)
            self._running[tenant_id] += 1
            return tenant_id, job

    def _next_tenant(self) -> str | None:
        limit = self._max_threads_each
        return next((tenant for tenant in self._waiting if self._running[tenant] < limit), None)


def _settle(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # whatever it is, it is the asker's
        future.set_exception(error)
