"""How much of a step bulk gets beside requests that somebody waits for: little, so that their gaps stay.

A step takes as long as its tokens make it. While anything more urgent decodes, bulk has a few tokens in each
step, half of them for prompts if there are any, and its decodes take turns. Alone it has all there is. An
urgent prompt beside those decodes doesn't change that: what it leaves of the budget is nobody's.
"""

from typing import NamedTuple

from .request import BULK, Request


class Restrained(NamedTuple):
    """Who is in this step. Bulk that is left out is next."""

    decodes: list[Request]
    prefills: list[Request]
    """The urgent ones."""
    bulk_prefills: list[Request]
    bulk_budget: int
    """Of the latter, all together."""


class BulkRestraint:
    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._turn = 0

    def hold_back(self, decodes: list[Request], prefills: list[Request]) -> "Restrained | None":
        """None: there is no bulk, or nobody whom it would hold up."""
        bulk = [request for request in decodes if request.class_rank == BULK]
        prompts = [request for request in prefills if request.class_rank == BULK]
        if len(bulk) == len(decodes) or not (bulk or prompts):
            return None
        chosen = self._in_turn(bulk, (self._num_tokens + 1) // 2 if prompts else self._num_tokens)
        if len(chosen) < len(bulk):
            decodes = [request for request in decodes if request.class_rank < BULK] + chosen
        return Restrained(
            decodes,
            [request for request in prefills if request.class_rank < BULK],
            prompts,
            self._num_tokens - len(chosen),
        )

    def _in_turn(self, bulk: list[Request], count: int) -> list[Request]:
        if len(bulk) <= count:
            return bulk
        start = self._turn % len(bulk)
        self._turn = start + count
        return (bulk + bulk)[start : start + count]
