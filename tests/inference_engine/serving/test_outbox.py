"""The bounded outbox: counts by frames and by tokens, and never refuses."""

import pytest

from inference_engine.contract.events import Pong
from inference_engine.serving.outbox import Batch, Outbox


def batch(num_tokens: int) -> Batch:
    return Batch([Pong()], num_tokens, step=1, has_work=True)


@pytest.mark.parametrize(("limits", "num_fitting"), [((3, 100), 3), ((100, 12), 3)])
def test_it_is_over_by_frames_or_by_tokens_until_enough_is_taken(
    limits: tuple[int, int], num_fitting: int
) -> None:
    outbox = Outbox(1, max_frames=limits[0], max_tokens=limits[1])
    for _ in range(num_fitting):
        outbox.put(batch(4))
        assert not outbox.is_over
    outbox.put(batch(4))
    assert outbox.is_over and len(outbox) == num_fitting + 1
    assert outbox.take() == batch(4)
    assert not outbox.is_over and outbox.num_tokens == 4 * num_fitting


def test_batches_leave_in_their_order_and_then_there_are_none() -> None:
    outbox = Outbox(1, max_frames=1, max_tokens=1)
    for number in range(3):
        outbox.put(batch(number))
    taken = [outbox.take() for _ in range(4)]
    assert [each and each.num_tokens for each in taken] == [0, 1, 2, None]
