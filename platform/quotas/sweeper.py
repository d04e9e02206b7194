"""Settles what nobody settles: reservations whose gateway stopped renewing them."""

import time

import redis
import structlog

from quotas.reservation_keys import ReservationKeys
from quotas.reservations import SETTLE, settle_arguments
from tenants.shards import NUM_BUCKETS, bucket_key
from usage.ledger_rows import abandoned_row, decoded

log = structlog.get_logger(__name__)

BATCH_PER_BUCKET = 200


class Sweeper:
    """Gives a reservation up `grace_s` after its lease ended.

    A run of Redis younger than `quiet_s` is left alone: those who hold leases must first renew them.
    """

    def __init__(self, client: redis.Redis, *, grace_s: float, quiet_s: float) -> None:
        self._redis = client
        self._grace_s = grace_s
        self._quiet_s = quiet_s

    def sweep(self) -> int:
        """The number of reservations settled. Raises RedisError."""
        if self._redis.info("server")["uptime_in_seconds"] < self._quiet_s:
            return 0
        seconds, micros = self._redis.time()
        before_ms = int((seconds + micros / 1e6 - self._grace_s) * 1000)
        return sum(self._give_up(*found, before_ms) for found in self._expired(before_ms))

    def _expired(self, before_ms: int) -> list[tuple[int, str]]:
        with self._redis.pipeline(transaction=False) as pipeline:
            for number in range(NUM_BUCKETS):
                pipeline.zrangebyscore(
                    bucket_key(number, "open"), "-inf", before_ms, start=0, num=BATCH_PER_BUCKET
                )
            answers = pipeline.execute()
        return [(number, request_id.decode()) for number, ids in enumerate(answers) for request_id in ids]

    def _give_up(self, bucket_number: int, request_id: str, before_ms: int) -> bool:
        held = decoded(
            self._redis.hgetall(bucket_key(bucket_number, f"reservation:{request_id}"))  # type: ignore[arg-type]
        )
        # Without the reservation only the entry in the bucket's set is left to be cleared.
        keys = ReservationKeys(
            held.get("tenant_id", str(bucket_number)),
            held.get("key_id", ""),
            request_id,
            held.get("model", ""),
        )
        row = abandoned_row(held, time.time())
        names, arguments = settle_arguments(keys, "expired", row, before_ms)
        closed = self._redis.eval(SETTLE.source, len(names), *names, *arguments)
        if closed == 1:
            log.warning("reservation_swept", request_id=request_id, tenant_id=keys.tenant_id)
        return closed == 1
