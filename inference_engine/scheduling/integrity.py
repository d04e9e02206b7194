"""The invariants of section "Scheduling rules", checked over the whole state."""

from collections import Counter

from inference_engine.contract.limits import BLOCK_SIZE

from .block_pool import BlockPool
from .kv_tables import KVTables, blocks_for
from .request import Request, RequestState
from .roster import Roster


class BrokenInvariant(AssertionError):
    """The scheduler's state contradicts itself: a bug here, never the fault of a request."""


def check_integrity(roster: Roster, kv: KVTables) -> None:
    """Raises BrokenInvariant."""
    _check_places(roster)
    for request in roster.by_id.values():
        _check_counts(request)
    _check_blocks(roster, kv.pool)
    _check_sharing(roster, kv)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenInvariant(what)


def _check_places(roster: Roster) -> None:
    """A request is in exactly one place, and its state says which."""
    waiting = {request.request_id: request for request in roster.queue}
    running = {request.request_id: request for request in roster.running.values()}
    _require(len(waiting) == len(roster.queue), "a request waits twice")
    _require(not waiting.keys() & running.keys(), "a request both waits and runs")
    _require(waiting | running == roster.by_id, "live requests differ from those that wait or run")
    _require(
        all(request.state is RequestState.WAITING for request in waiting.values()), "state of a waiting one"
    )
    _require(
        all(request.state is RequestState.RUNNING for request in running.values()), "state of a running one"
    )
    holders = {request.arrival for request in waiting.values() if request.block_table}
    _require(holders == roster.holders.keys(), "waiting requests that hold blocks")
    counts = Counter(request.tenant_id for request in waiting.values())
    _require(counts == roster.num_waiting_by_tenant, "waiting requests by tenant")
    tokens: Counter[str] = Counter()
    for request in waiting.values():
        tokens[request.tenant_id] += request.queued_tokens
    _require(tokens == roster.waiting_tokens_by_tenant, "waiting tokens by tenant")


def _check_counts(request: Request) -> None:
    known = request.num_prompt + len(request.output_ids)
    _require(request.num_known == known, f"known tokens of {request}")
    in_order = 0 <= request.num_computed <= request.num_scheduled <= known + request.num_pending
    _require(in_order, f"counts of {request}")
    _require(blocks_for(request.num_scheduled) <= len(request.block_table), f"page table of {request}")
    _require(len(request.output_ids) < request.max_tokens, f"outputs of {request}")


def _check_blocks(roster: Roster, pool: BlockPool) -> None:
    """free + cached + referenced + quarantined = all, without overlap; counts equal the page tables."""
    table_counts = Counter(block for request in roster.by_id.values() for block in request.block_table)
    counts = Counter({block: count for block, count in enumerate(pool.ref_counts) if count})
    _require(
        counts == table_counts, f"reference counts {counts} are not those of the page tables {table_counts}"
    )
    places = {**pool.places(), "referenced": set(table_counts)}
    num_placed = sum(len(blocks) for blocks in places.values())
    _require(num_placed == pool.num_blocks, f"{num_placed} blocks placed of {pool.num_blocks}: {places}")
    _require(set().union(*places.values()) == set(range(pool.num_blocks)), f"blocks in two places: {places}")
    _require(pool.num_referenced == len(table_counts), "number of referenced blocks")
    _require(places["cached"] <= pool.index.blocks(), "a cached block that the index doesn't name")
    _require(not places["free"] & pool.index.blocks(), "a free block that the index names")


def _check_sharing(roster: Roster, kv: KVTables) -> None:
    """No block is writable by two requests, none that the index names is writable, none crosses tenants."""
    owner: dict[int, str] = {}
    for request in roster.by_id.values():
        _require(len(set(request.block_table)) == len(request.block_table), f"a block twice in {request}")
        for index, block in enumerate(request.block_table):
            is_closed = (index + 1) * BLOCK_SIZE <= request.num_computed
            is_shared = kv.pool.ref_counts[block] > 1 or block in kv.index
            _require(is_closed or not is_shared, f"block {block} of {request} is shared and writable")
            same_tenant = owner.setdefault(block, request.tenant_id) == request.tenant_id
            _require(same_tenant, f"block {block} of {request} belongs to another tenant")
