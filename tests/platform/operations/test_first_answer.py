"""The first answer: what is taken from a stream, and patience with an engine that is not there yet."""

from collections.abc import Iterator

import pytest

from operations.first_answer import MAX_ATTEMPTS, PAUSE_S, Unavailable, patient_answer, pieces_of


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n', []),
        (b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n', ["Hi"]),
        (b'data: {"choices": []}\n', []),
        (b": ping\n", []),
        (b"\n", []),
        (b"data: [DONE]\n", []),
    ],
)
def test_text_is_taken_from_events(line: bytes, pieces: list[str]) -> None:
    assert list(pieces_of(line)) == pieces


def test_an_error_event_is_an_error() -> None:
    with pytest.raises(OSError, match="lost"):
        list(pieces_of(b'data: {"error": {"message": "The engine was lost."}}\n'))


class Server:
    """Is away for the first `num_away` questions."""

    def __init__(self, num_away: int) -> None:
        self.num_away = num_away
        self.pauses: list[float] = []

    def ask(self) -> Iterator[str]:
        if self.num_away:
            self.num_away -= 1
            raise Unavailable("HTTP 503")
        yield from ("one", "two")


def test_an_absent_engine_is_asked_again() -> None:
    server = Server(MAX_ATTEMPTS - 1)
    assert list(patient_answer(server.ask, server.pauses.append)) == ["one", "two"]
    assert server.pauses == [PAUSE_S] * (MAX_ATTEMPTS - 1)


def test_patience_ends() -> None:
    server = Server(MAX_ATTEMPTS)
    with pytest.raises(Unavailable):
        list(patient_answer(server.ask, server.pauses.append))
