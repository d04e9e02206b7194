"""Where a chain is broken: pure, over records that no database holds."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from audit.chain import FIRST_PREVIOUS, canonical, find_break, link_hash

START = datetime(2026, 11, 30, tzinfo=UTC)


@dataclass
class Record:
    id: int
    at: datetime
    actor: str = "user:alice"
    action: str = "tenant.update"
    subject: str = "tenant:1"
    tenant_id: int | None = 1
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    request_id: str = "req_1"
    address: str = "127.0.0.1"
    previous_hash: str = FIRST_PREVIOUS
    hash: str = ""


def relinked(records: list[Record]) -> list[Record]:
    """As someone would who can compute hashes."""
    previous, linked = FIRST_PREVIOUS, []
    for record in records:
        record = replace(record, previous_hash=previous)
        record.hash = previous = link_hash(record)
        linked.append(record)
    return linked


@pytest.fixture
def chain() -> list[Record]:
    return relinked([Record(n, START + timedelta(seconds=n), after={"weight": n / 2}) for n in range(1, 7)])


def heads(chain: list[Record]) -> dict[int, str]:
    return {record.id: record.hash for record in chain}


def test_a_sound_chain_has_no_break(chain: list[Record]) -> None:
    assert find_break(chain, heads(chain)) is None
    assert find_break([], {}) is None


def test_records_newer_than_the_last_head_are_no_break(chain: list[Record]) -> None:
    assert find_break(chain, heads(chain[:3])) is None


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "user:bob"},
        {"action": "tenant.create"},
        {"subject": "tenant:2"},
        {"tenant_id": None},
        {"before": {}},
        {"after": {"weight": 7}},
        {"request_id": ""},
        {"address": "::1"},
        {"at": START},
        {"previous_hash": "1" * 64},
        {"hash": "1" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_changed_field_breaks_that_record(chain: list[Record], change: dict[str, Any]) -> None:
    changed = [replace(record, **change) if record.id == 3 else record for record in chain]
    assert find_break(changed, heads(chain)) == "record 3 was changed"


def test_a_deleted_record_is_missed(chain: list[Record]) -> None:
    assert find_break(chain[:2] + chain[3:], {}) == "record 3 is missing"
    assert find_break(chain[1:], {}) == "record 1 is missing"


def test_a_deleted_record_whose_successors_moved_up_is_missed(chain: list[Record]) -> None:
    moved = [replace(record, id=record.id - 1) for record in chain[3:]]
    assert find_break(chain[:2] + moved, {}) == "record 3 was changed"


def test_swapped_records_break_at_the_first(chain: list[Record]) -> None:
    swapped = [*chain[:2], replace(chain[3], id=3), replace(chain[2], id=4), *chain[4:]]
    assert find_break(swapped, {}) == "record 3 was changed"


def test_a_record_made_again_does_not_carry_its_successor(chain: list[Record]) -> None:
    forged = replace(chain[2], actor="user:bob")
    forged.hash = link_hash(forged)
    assert find_break([*chain[:2], forged, *chain[3:]], {}) == "record 4 does not follow record 3"


def test_a_chain_made_again_from_somewhere_contradicts_the_heads(chain: list[Record]) -> None:
    forged = relinked([*chain[:2], replace(chain[2], actor="user:bob"), *chain[3:]])
    assert find_break(forged, {}) is None
    problem = find_break(forged, heads(chain))
    assert problem is not None and problem.startswith("record 3 was rewritten")


@pytest.mark.parametrize("left", [5, 3, 0])
def test_a_cut_tail_is_missed_because_of_the_heads(chain: list[Record], left: int) -> None:
    assert find_break(chain[:left], {}) is None
    expected = f"record {left + 1} is missing: the chain once reached record 6"
    assert find_break(chain[:left], heads(chain)) == expected


def test_what_databases_give_back_hashes_the_same(chain: list[Record]) -> None:
    record = replace(chain[0], after={"weight": 1.0, "big": 1e20, "list": [2.0, True, None, 0.5]})
    given_back = replace(
        record,
        after={"list": [2, True, None, 0.5], "big": 10**20, "weight": 1},
        at=record.at.astimezone(timezone(timedelta(hours=3))),
    )
    assert link_hash(given_back) == link_hash(record)
    assert canonical([True]) == [True]
