"""Cold budgets: what was spent is counted from the ledger before anything is admitted.

Redis begins to count at one moment, in one call that also answers the rows on their way to the ledger; the
ledger is read after that moment, each request counted once. Who begins after another loader replaces it.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError, connections

from quotas.limits import LimitRule, LimitScope
from quotas.periods import Period, period_of
from quotas.reservation_keys import ReservationKeys
from quotas.script_calls import Script, Value
from quotas.store import closed_when_unreachable, current_run, run_script
from tenants.errors import store_unavailable
from tenants.shards import tenant_key
from usage.billing import Subject, billed_tokens

log = structlog.get_logger(__name__)

BEGIN, FINISH = Script("begin_loading"), Script("finish_loading")
PATIENCE_MS = 3000
"""With another process that loads the same budgets."""
OPEN = -1
"""In place of the tokens of a request that counts once it settles."""
POLL_S = 0.02

_loading: dict[tuple[str, ...], asyncio.Task[None]] = {}
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="budget-loading")


@dataclass(frozen=True, slots=True)
class Budget:
    name: str
    field: str
    """Of ledger rows and reservations, that `subject` is the value of."""
    subject: str
    tenant_id: str
    period: Period

    def arguments(self) -> tuple[Value, ...]:
        return self.field, self.tenant_id, self.subject, self.period.start, self.period.end


async def load_budgets(keys: ReservationKeys, rules: Sequence[LimitRule], time_zone: str, now: float) -> None:
    """Requests that need the same budgets at the same time share one load. Raises STORE_UNAVAILABLE."""
    budgets = [_budget(keys, rule, period_of(rule.kind, now, time_zone)) for rule in rules]
    names = tuple(budget.name for budget in budgets)
    task = _loading.get(names)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = asyncio.create_task(_load(keys, budgets))
        _loading[names] = task
        task.add_done_callback(lambda done: _forget(names, done))
    await asyncio.shield(task)


def _forget(names: tuple[str, ...], task: "asyncio.Task[None]") -> None:
    if _loading.get(names) is task:
        del _loading[names]
    if not task.cancelled():
        task.exception()  # seen by those who wait; nobody may be left


def _budget(keys: ReservationKeys, rule: LimitRule, period: Period) -> Budget:
    field, subject = {
        LimitScope.TENANT: ("tenant_id", keys.tenant_id),
        LimitScope.KEY: ("key_id", keys.key_id),
        LimitScope.MODEL: ("model", keys.model),
    }[rule.scope]
    return Budget(keys.budget(rule, period), field, subject, keys.tenant_id, period)


async def _load(keys: ReservationKeys, budgets: list[Budget]) -> None:
    token, names = secrets.token_hex(8), [budget.name for budget in budgets]
    async with closed_when_unreachable():
        waiting = await _begin(keys, budgets, token)
    spent = await asyncio.get_running_loop().run_in_executor(_threads, _spent, budgets, waiting)
    async with closed_when_unreachable():
        await run_script(FINISH, names, [token, current_run(), *spent])
    log.info("budgets_loaded", tenant_id=keys.tenant_id, budgets=len(budgets), on_their_way=len(waiting))


async def _begin(keys: ReservationKeys, budgets: list[Budget], token: str) -> list[tuple[int, str, int]]:
    """(index of budget, request id, tokens) of rows that may not be in the ledger yet, and of open requests.
    Raises RedisError."""
    prefix = tenant_key(keys.tenant_id, "reservation:")
    while True:
        head: list[Value] = [token, PATIENCE_MS, prefix, current_run()]
        details = [value for budget in budgets for value in budget.arguments()]
        names = [budget.name for budget in budgets]
        answer: Any = await run_script(BEGIN, [keys.open, keys.ledger, *names], [*head, *details])
        if answer[0] == b"begun":
            return [(number - 1, request_id.decode(), tokens) for request_id, number, tokens in answer[1:]]
        await asyncio.sleep(POLL_S)


def _spent(budgets: list[Budget], waiting: list[tuple[int, str, int]]) -> list[int]:
    """On a thread of its own. Raises STORE_UNAVAILABLE."""
    try:
        return [
            _spent_of(budget, rows)
            for budget, rows in zip(budgets, _by_budget(budgets, waiting), strict=True)
        ]
    except (DatabaseError, InterfaceError) as error:
        log.warning("budget_loading_failed", error=str(error))
        raise store_unavailable() from error
    finally:
        connections.close_all()


def _by_budget(budgets: list[Budget], waiting: list[tuple[int, str, int]]) -> list[dict[str, int]]:
    """A request that waits twice is one request; the first entry counts, as in the ledger. Open ones lead."""
    rows: list[dict[str, int]] = [{} for _ in budgets]
    for index, request_id, tokens in waiting:
        rows[index].setdefault(request_id, tokens)
    return rows


def _spent_of(budget: Budget, waiting: Mapping[str, int]) -> int:
    subject = Subject(
        tenant_id=int(budget.tenant_id),
        key_id=budget.subject if budget.field == "key_id" else None,
        model=budget.subject if budget.field == "model" else None,
    )
    since, until = (datetime.fromtimestamp(at, UTC) for at in (budget.period.start, budget.period.end))
    rows = {request_id: tokens for request_id, tokens in waiting.items() if tokens != OPEN}
    return billed_tokens(subject, since, until, rows, waiting.keys() - rows.keys())
