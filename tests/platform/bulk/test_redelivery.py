"""The broker's settings: what a dead worker had is looked for at each look, whoever died while looking."""

import pytest
import redis
from kombu import Consumer, Queue

from control_plane.celery import KEY_PREFIX, QUEUE, app

LONGEST_S = 15


def test_each_look_is_one_and_who_died_in_the_middle_keeps_nobody_from_the_next_for_long(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    with redis.Redis.from_url(redis_url) as client, app.connection_for_read() as connection:
        channel = connection.default_channel
        Consumer(channel, queues=[Queue(QUEUE)]).consume()
        client.zadd(f"{KEY_PREFIX}unacked_index", {"lost": 1.0})
        monkeypatch.setattr(
            channel.qos,
            "restore_by_tag",
            lambda *_: looks.append(client.ttl(f"{KEY_PREFIX}unacked_mutex")),
        )
        try:
            for _ in range(3):
                connection.transport.cycle.maybe_restore_messages()
        finally:
            client.delete(*client.scan_iter(f"{KEY_PREFIX}*"))
    assert len(looks) == 3
    assert all(0 < seconds <= LONGEST_S for seconds in looks)
