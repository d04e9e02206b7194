"""Which of several candidates are answered: those with the highest log probability per token."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.orders.order import Order
from gateway.runs.answer import Collected


def best_of(collected: Sequence[Collected], order: Order) -> list[Collected]:
    """The best `num_choices` of each prompt's candidates, the best first, numbered anew."""
    if order.num_candidates == order.num_choices:
        return list(collected)
    best: list[Collected] = []
    for first in range(0, len(collected), order.num_candidates):
        candidates = collected[first : first + order.num_candidates]
        best += sorted(candidates, key=_score, reverse=True)[: order.num_choices]
    return [replace(one, index=index) for index, one in enumerate(best)]


def _score(one: Collected) -> float:
    """Mean logprob; an answer without a token comes last. Of equals the earlier stays first."""
    if not one.logprobs:
        return float("-inf")
    return sum(token.logprob for token in one.logprobs) / len(one.logprobs)
