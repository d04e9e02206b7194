"""Policies by name."""

from collections.abc import Callable

from .fair import FairShares
from .fcfs import FirstComeFirstServed
from .policy import QueuePolicy
from .priority import PriorityByClass

POLICIES: dict[str, Callable[[int], QueuePolicy]] = {
    "fair": FairShares,
    "fcfs": lambda ageing_tokens: FirstComeFirstServed(),
    "priority": PriorityByClass,
}


def make_policy(name: str, ageing_tokens: int) -> QueuePolicy:
    """`name` is one of POLICIES."""
    return POLICIES[name](ageing_tokens)
