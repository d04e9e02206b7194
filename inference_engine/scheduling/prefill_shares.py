"""How one step's prefill budget is divided among the prompts that are being computed."""

from collections.abc import Sequence

from inference_engine.contract.limits import BLOCK_SIZE

from .request import Request


def max_prefills(budget: int) -> int:
    """How many prompts of a class and those above it may share the budget: enough that a short one starts
    beside long ones, few enough that the chunks stay worth a row of their own."""
    return max(2, budget // BLOCK_SIZE)


def share_budget(requests: Sequence[Request], budget: int) -> list[int]:
    """Tokens for each request, in order of age; the sum is at most `budget`.

    A quarter is dealt out evenly, so that every prompt moves in every step (the oldest first, should there be
    fewer tokens than prompts); the rest goes to the most urgent class, and there to whichever has the least
    left, which is what keeps a short prompt from waiting for a long one.
    """
    if not requests:
        return []
    remaining = [request.num_remaining for request in requests]
    floor = max(1, budget // (4 * len(remaining)))
    grants = []
    for need in remaining:
        grants.append(min(need, floor, budget))
        budget -= grants[-1]
    for index in sorted(range(len(requests)), key=lambda i: (requests[i].class_rank, remaining[i])):
        extra = min(remaining[index] - grants[index], budget)
        grants[index] += extra
        budget -= extra
    return grants
