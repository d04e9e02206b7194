"""Four books that must agree: what clients got, the ledger, the counters in Redis, the engines' counters."""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from chaos.load import Answer
from chaos.watch import Watch
from chaos.world import BURSTS, LIMITS, World

SLACK_S = 0.002
"""Between two readings of one clock."""


@dataclass
class Verdict:
    overspent: int
    leaked: int
    missing_rows: int
    duplicate_rows: int
    wrong_rows: int
    """Rows with other than the tokens that their client received."""
    not_in_engines: int
    """Tokens by which ledger and engines differ; 0 where an engine was killed, and its counters with it."""
    num_requests: int
    num_rows: int

    @property
    def is_clean(self) -> bool:
        told = asdict(self)
        return not any(told[name] for name in told if not name.startswith("num_"))


def judge(world: World, watch: Watch, answers: list[Answer], *, engines_lived: bool) -> Verdict:
    rows = world.rows("SELECT * FROM usage_ledgerentry")
    by_id = Counter(row["request_id"] for row in rows)
    admitted = [answer for answer in answers if answer.status == 200]
    return Verdict(
        overspent=watch.num_over + _over_rates(world, rows) + _over_budgets(world, rows),
        leaked=world.reserved() + _unequal_counters(world, rows),
        missing_rows=sum(not by_id[answer.request_id] for answer in admitted),
        duplicate_rows=sum(count - 1 for count in by_id.values()) + _unequal_rollups(world, rows),
        wrong_rows=_wrong_rows(admitted, rows),
        not_in_engines=_difference_to_engines(world, rows) if engines_lived else 0,
        num_requests=len(answers),
        num_rows=len(rows),
    )


def _wrong_rows(admitted: list[Answer], rows: list[dict[str, Any]]) -> int:
    """A whole answer is billed to the token; one that broke off at least for what has arrived."""
    billed = {row["request_id"]: row["output_tokens"] for row in rows}
    wrong = 0
    for answer in admitted:
        tokens = billed.get(answer.request_id, answer.num_tokens)
        wrong += tokens != answer.num_tokens if answer.is_whole else tokens < answer.num_tokens
    return wrong


def _difference_to_engines(world: World, rows: list[dict[str, Any]]) -> int:
    stats = world.engine_stats()
    made = sum(one.prompt_tokens + one.output_tokens for one in stats)
    return made - sum(row["prompt_tokens"] + row["output_tokens"] + row["overrun_tokens"] for row in rows)


def _unequal_counters(world: World, rows: list[dict[str, Any]]) -> int:
    """Budgets whose `spent` isn't the ledger's sum."""
    unequal = 0
    for name in ("budget", "month"):
        spent = world.spent(name)
        unequal += spent is not None and spent != _billed(world, rows, name)
    return unequal


def _over_budgets(world: World, rows: list[dict[str, Any]]) -> int:
    limits = {"budget": LIMITS["budget"]["tokens_per_day"], "month": LIMITS["month"]["tokens_per_month"]}
    return sum(_billed(world, rows, name) > limit for name, limit in limits.items())


def _billed(world: World, rows: list[dict[str, Any]], name: str) -> int:
    mine = [row for row in rows if row["tenant_id"] == world.tenants[name]]
    return sum(row["prompt_tokens"] + row["output_tokens"] for row in mine)


def _over_rates(world: World, rows: list[dict[str, Any]]) -> int:
    """Intervals in which more was admitted than burst + rate x t."""
    tenant, rate = world.tenants["requests"], LIMITS["requests"]["requests_per_minute"] / 60
    at = sorted(_seconds(row["admitted_at"]) for row in rows if row["tenant_id"] == tenant)
    return sum(
        last - first + 1 > BURSTS["requests"] + rate * (at[last] - at[first] + SLACK_S)
        for first in range(len(at))
        for last in range(first + BURSTS["requests"], len(at))
    )


def _seconds(value: Any) -> float:
    when = datetime.fromisoformat(value) if isinstance(value, str) else value
    return float((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def _unequal_rollups(world: World, rows: list[dict[str, Any]]) -> int:
    (sums,) = world.rows(
        "SELECT COALESCE(SUM(num_requests), 0) AS requests, COALESCE(SUM(output_tokens), 0) AS tokens"
        " FROM usage_dailyusage"
    )
    told = (int(sums["requests"]), int(sums["tokens"]))
    return told != (len(rows), sum(row["output_tokens"] for row in rows))
