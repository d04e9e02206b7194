"""quotas.reservations.reserve at the present time, unless a test names another."""

import time
from typing import Any

from quotas import reservations
from quotas.limits import Policy
from quotas.outcomes import Outcome
from quotas.reservations import Reservation


async def reserve(reservation: Reservation, policy: Policy, **named: Any) -> Outcome:
    return await reservations.reserve(reservation, policy, **{"is_fresh": True, "now": time.time(), **named})
