"""The scheduler's invariants, checked over its whole state.

free + cached + referenced + quarantined blocks are all blocks; reference counts are those of the page tables;
a request is in one place; no block that one request may write is read by another; none crosses tenants.
"""

from collections import Counter

from inference_engine.contract.limits import BLOCK_SIZE

from .block_pool import BlockPool
from .kv_tables import KVTables, blocks_for
from .request import BULK, Request, RequestState
from .roster import Roster


class BrokenInvariant(AssertionError):
    """The scheduler's state contradicts itself: a bug here, never the fault of a request."""


def check_integrity(roster: Roster, kv: KVTables) -> None:
    """Raises BrokenInvariant."""
    waiting, running = list(roster.waiting()), list(roster.running.values())
    _check_places(roster, waiting, running)
    _check_queue_counts(roster, waiting)
    for request in roster.by_id.values():
        _check_counts(request)
    _check_blocks(roster, kv.pool)
    _check_sharing(roster, kv)
    _check_tenants(roster, kv)


def _check_places(roster: Roster, waiting: list[Request], running: list[Request]) -> None:
    num_places, num_distinct = (
        len(waiting) + len(running),
        len({id(request) for request in waiting + running}),
    )
    if not num_places == num_distinct == len(roster.by_id):
        raise BrokenInvariant(
            f"{len(roster.by_id)} live requests, {num_distinct} of them in {num_places} places"
        )
    for state, requests in ((RequestState.WAITING, waiting), (RequestState.RUNNING, running)):
        for request in requests:
            if request.state is not state or roster.by_id.get(request.request_id) is not request:
                raise BrokenInvariant(f"{request} among the {state.value}")


def _check_queue_counts(roster: Roster, waiting: list[Request]) -> None:
    if {request.arrival for request in waiting if request.block_table} != roster.holders.keys():
        raise BrokenInvariant("the waiting requests that hold blocks are others than those noted")
    if Counter(request.tenant_id for request in waiting) != roster.num_waiting_by_tenant:
        raise BrokenInvariant("waiting requests by tenant")
    tokens: Counter[str] = Counter()
    for request in waiting:
        tokens[request.tenant_id] += request.queued_tokens
    if tokens != roster.waiting_tokens_by_tenant:
        raise BrokenInvariant("waiting tokens by tenant")


def _check_counts(request: Request) -> None:
    if request.num_known != len(request.prompt_ids) + len(request.output_ids):
        raise BrokenInvariant(f"known tokens of {request}")
    is_in_order = 0 <= request.num_computed <= request.num_scheduled <= request.num_expected
    if not is_in_order or request.num_known > request.num_expected:
        raise BrokenInvariant(f"counts out of order in {request}")
    if blocks_for(request.num_scheduled) > len(request.block_table):
        raise BrokenInvariant(f"scheduled tokens without blocks in {request}")
    if len(request.output_ids) + request.num_pending > request.max_tokens:
        raise BrokenInvariant(f"more than max_tokens in {request}")


def _check_blocks(roster: Roster, pool: BlockPool) -> None:
    table_counts = Counter(block for request in roster.by_id.values() for block in request.block_table)
    counts = {block: count for block, count in enumerate(pool.ref_counts) if count}
    if counts != table_counts:
        wrong = {block for block in range(pool.num_blocks) if pool.ref_counts[block] != table_counts[block]}
        raise BrokenInvariant(
            f"reference counts of {len(wrong)} blocks are not the page tables', as {min(wrong)}"
        )
    places = {**pool.places(), "referenced": set(table_counts)}
    num_placed = sum(len(blocks) for blocks in places.values())
    num_distinct = len(set().union(*places.values()))
    if not num_placed == num_distinct == pool.num_blocks:
        raise BrokenInvariant(f"{pool.num_blocks} blocks, {num_distinct} of them in {num_placed} places")
    if pool.num_referenced != len(table_counts):
        raise BrokenInvariant(f"{pool.num_referenced} blocks referenced, {len(table_counts)} in page tables")
    if any(block not in pool.index for block in places["cached"]):
        raise BrokenInvariant("a cached block that the index doesn't name")
    if any(block in pool.index for block in places["free"]):
        raise BrokenInvariant("a free block that the index names")


def _check_tenants(roster: Roster, kv: KVTables) -> None:
    held: dict[str, set[int]] = {}
    for request in roster.by_id.values():
        if request.block_table:
            held.setdefault(request.tenant_id, set()).update(request.block_table)
    if {tenant: len(blocks) for tenant, blocks in held.items()} != kv.num_held:
        raise BrokenInvariant(f"tenants hold other blocks than counted: {kv.num_held}")
    bulk = [request.arrival for request in roster.running.values() if request.class_rank == BULK]
    if sorted(bulk) != sorted(roster.running_bulk):
        raise BrokenInvariant("running bulk requests")


def _check_sharing(roster: Roster, kv: KVTables) -> None:
    owner: dict[int, str] = {}
    for request in roster.by_id.values():
        for index, block in enumerate(request.block_table):
            is_full = (index + 1) * BLOCK_SIZE <= request.num_computed
            if not is_full and (kv.pool.ref_counts[block] > 1 or block in kv.index):
                raise BrokenInvariant(f"block {block} of {request} can be written and is shared")
            if owner.setdefault(block, request.tenant_id) != request.tenant_id:
                raise BrokenInvariant(f"block {block} of {request} belongs to another tenant")
