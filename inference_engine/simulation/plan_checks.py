"""What must be true of any step plan, alone and beside the one in flight."""

from collections.abc import Container

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.integrity import BrokenInvariant
from inference_engine.scheduling.request import BULK, RequestState
from inference_engine.scheduling.scheduler import SchedulerConfig
from inference_engine.scheduling.step_plan import PENDING_TOKEN, ScheduledChunk, StepPlan, num_tokens


def check_plan(plan: StepPlan, config: SchedulerConfig) -> None:
    """Raises BrokenInvariant."""
    if len({chunk.request.arrival for chunk in plan.chunks}) != len(plan.chunks) or not plan.chunks:
        raise BrokenInvariant(f"step {plan.step}: no chunk, or two of one request")
    if sum(chunk.num_sampled for chunk in plan.chunks) > config.max_running:
        raise BrokenInvariant(f"step {plan.step}: more rows are sampled than requests may run")
    if plan.num_tokens != num_tokens(plan.chunks) or plan.num_tokens > config.max_step_tokens:
        raise BrokenInvariant(f"step {plan.step}: {plan.num_tokens} tokens")
    targets = [target for _, target in plan.copies]
    if len(set(targets)) != len(targets):
        raise BrokenInvariant(f"step {plan.step}: a block is the target of two copies")
    for chunk in plan.chunks:
        _check_chunk(chunk, config)
    check_apart(plan, plan)


def _check_chunk(chunk: ScheduledChunk, config: SchedulerConfig) -> None:
    end = chunk.start + len(chunk.token_ids)
    if chunk.request.state is not RequestState.RUNNING:
        raise BrokenInvariant(f"{chunk} is scheduled and doesn't run")
    if not chunk.token_ids or end > len(chunk.block_table) * BLOCK_SIZE or end > config.context_length:
        raise BrokenInvariant(f"{chunk} is empty, or has positions without a block")
    if chunk.num_drafts and not (chunk.samples and chunk.num_drafts < len(chunk.token_ids)):
        raise BrokenInvariant(f"{chunk} has drafts behind nothing")
    for offset, token_id in enumerate(chunk.token_ids[: len(chunk.token_ids) - chunk.num_drafts]):
        is_pending = token_id == PENDING_TOKEN
        if is_pending and (not config.lag or not chunk.samples or offset != len(chunk.token_ids) - 1):
            raise BrokenInvariant(f"{chunk} has a pending token where none can be")
        if not is_pending and token_id != chunk.request.known_ids[chunk.start + offset]:
            raise BrokenInvariant(f"{chunk} has other tokens than its request")


def check_apart(earlier: StepPlan, later: StepPlan) -> None:
    """No block that one request writes in one step is read or written for another in the other step."""
    for one, other in ((earlier, later), (later, earlier)):
        writer = {block: chunk.request for chunk in one.chunks for block in _written(chunk)}
        for chunk in other.chunks:
            for block in _read(chunk):
                if writer.get(block, chunk.request) is not chunk.request:
                    raise BrokenInvariant(f"block {block} is written by {writer[block]} and used by {chunk}")


def check_copies(earlier: StepPlan, later: StepPlan) -> None:
    """Nothing is copied over what the step in flight uses."""
    used = {block for chunk in earlier.chunks for block in _read(chunk)}
    for _, target in later.copies:
        if target in used:
            raise BrokenInvariant(f"block {target} is copied to and in use by step {earlier.step}")


def check_restraint(plan: StepPlan, config: SchedulerConfig, running: Container[int]) -> None:
    """Beside a decode that is more urgent bulk has its few tokens, drafts and all. `running`: the arrival
    numbers of those that ran before the step, for one that comes back may have a single token to compute."""
    num_bulk = num_tokens([chunk for chunk in plan.chunks if chunk.request.class_rank == BULK])
    urgent = [chunk for chunk in plan.chunks if _is_urgent_decode(chunk) and chunk.request.arrival in running]
    if urgent and num_bulk > config.bulk_tokens:
        raise BrokenInvariant(f"step {plan.step}: {num_bulk} tokens of bulk beside {urgent[0]}")


def _is_urgent_decode(chunk: ScheduledChunk) -> bool:
    request, num_known = chunk.request, len(chunk.token_ids) - chunk.num_drafts
    return request.class_rank < BULK and chunk.samples and num_known == 1 and not request.num_preemptions


def _read(chunk: ScheduledChunk) -> list[int]:
    end = chunk.start + len(chunk.token_ids)
    return chunk.block_table[: -(-end // BLOCK_SIZE)]


def _written(chunk: ScheduledChunk) -> list[int]:
    return _read(chunk)[chunk.start // BLOCK_SIZE :]
