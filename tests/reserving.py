"""Reserving at the present time, unless a test names another, and leases that nobody renews."""

import time
from typing import Any

import redis

from quotas import reservations
from quotas.limits import Policy
from quotas.outcomes import Outcome
from quotas.reservations import Reservation


async def reserve(reservation: Reservation, policy: Policy, **named: Any) -> Outcome:
    return await reservations.reserve(reservation, policy, **{"is_fresh": True, "now": time.time(), **named})


def run_out_all_leases(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        for kind in ("leases:*", "open"):
            for name in client.scan_iter(f"octavo:{{b:*}}:{kind}"):
                client.zadd(name, dict.fromkeys(client.zrange(name, 0, -1), 1))  # type: ignore[arg-type]
