"""What a worker's tasks see to besides the work itself."""

import redis

from api_keys.models import ApiKey
from batch_rows import running_batch
from bulk.announcing import FINISH
from bulk.batches.services import cancel_batch
from bulk.tasks import run


def test_whoever_stops_at_a_cancelled_batch_has_it_ended_without_waiting_for_a_sweep(
    store: redis.Redis,
    key_and_secret: tuple[ApiKey, str],
    stopped_loop: None,
    announced: list[tuple[str, int]],
) -> None:
    batch = running_batch(key_and_secret[0], 2)
    cancel_batch(batch)
    announced.clear()
    run(batch.chunks.get().pk)
    assert announced == [(FINISH, batch.pk)]
