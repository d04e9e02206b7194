"""What a line makes of bytes that a Redis at hand doesn't send."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from quotas.redis_line import RedisLine


class Asked:
    def __init__(self) -> None:
        self.sent_at = 0.0
        self.answers: list[Any] = []

    def packed(self) -> bytes:
        return b"PING\r\n"

    def answered(self, answer: Any) -> None:
        self.answers.append(answer)


class Lost:
    """What `on_lost` was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Sequence[Any], RedisError]] = []

    def __call__(self, commands: Sequence[Any], error: RedisError) -> None:
        self.calls.append((commands, error))


def line_with(commands: list[Asked], lost: Lost) -> RedisLine:
    writer = Mock()
    writer.transport.is_closing.return_value = False
    line = RedisLine(writer, 5.0, lost)
    line.send(commands)
    return line


async def test_answers_in_pieces_go_to_those_who_asked_in_their_order() -> None:
    commands, lost = [Asked(), Asked(), Asked()], Lost()
    line = line_with(commands, lost)
    for piece in (b":7\r", b"\n-ERR no\r\n*2\r\n:1\r\n", b"$1\r\nx\r\n"):
        line.data_received(piece)
    (seven,), (refused,), (both,) = (command.answers for command in commands)
    assert (seven, both) == (7, [1, b"x"]) and isinstance(refused, ResponseError)
    assert line.close() == [] and lost.calls == []


async def test_news_that_nobody_asked_for_answer_nobody() -> None:
    commands, lost = [Asked()], Lost()
    line = line_with(commands, lost)
    line.data_received(b">2\r\n$6\r\nMOVING\r\n:15\r\n:7\r\n")
    assert commands[0].answers == [7]
    line.close()


async def test_what_is_no_answer_ends_the_line() -> None:
    for nonsense in (b"HTTP/1.1 400 Bad Request\r\n", b":1\r\n:2\r\n:3\r\n"):
        commands, lost = [Asked(), Asked()], Lost()
        line_with(commands, lost).data_received(nonsense)
        ((left, error),) = lost.calls
        assert isinstance(error, RedisConnectionError)
        assert left == [command for command in commands if not command.answers]
