"""Is anything read of what waits for a client?"""

from typing import Any

from gateway.transport.reader_watch import ReaderWatch


class Connection:
    """Transport and clock."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.was_aborted = False
        self.timers: list[Any] = []

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.was_aborted = True

    def call_later(self, _: float, act: Any) -> "Connection":
        self.timers.append(act)
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def time_passes(self) -> None:
        self.timers.pop()()


def watched(size: int) -> tuple[Connection, ReaderWatch]:
    connection = Connection(size)
    return connection, ReaderWatch(connection, connection)  # type: ignore[arg-type]


def test_who_reads_slowly_is_waited_for() -> None:
    connection, watch = watched(1000)
    watch.begin()
    for size in (999, 500, 0):
        connection.size = size
        connection.time_passes()
    assert not connection.timers and not connection.was_aborted


def test_who_has_stopped_reading_is_not() -> None:
    connection, watch = watched(1000)
    watch.begin()
    connection.size = 10
    connection.time_passes()
    assert not connection.was_aborted
    connection.time_passes()
    assert connection.was_aborted and not connection.timers


def test_where_nothing_waits_nothing_is_watched() -> None:
    connection, watch = watched(0)
    watch.begin()
    assert not connection.timers


def test_a_watch_that_has_ended_looks_no_more_and_can_begin_again() -> None:
    connection, watch = watched(1000)
    watch.begin()
    watch.begin()
    assert len(connection.timers) == 1
    watch.end()
    watch.end()
    assert not connection.timers
    watch.begin()
    assert len(connection.timers) == 1
