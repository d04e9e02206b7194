"""How much of a step bulk gets beside requests that somebody waits for: little, so that their gaps stay.

A step takes as long as its tokens make it. While anything more urgent decodes, bulk has a few tokens in each
step, half of them for prompts if there are any, and its decodes take turns. Alone it has all there is. A
step with an urgent prompt is among the longest that such a decode waits for: there bulk has a single token.
"""

from typing import NamedTuple

from .request import BULK, Request


class Restrained(NamedTuple):
    """Who is in this step. Bulk that is left out is next."""

    decodes: list[Request]
    prefills: list[Request]
    """The urgent ones, as `decodes` are."""
    bulk_decodes: list[Request]
    """These draft nothing: a draft is a token like any other."""
    bulk_prefills: list[Request]
    bulk_budget: int
    """Of these prefills, all together."""


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
        num_tokens = self._num_tokens if len(prompts) == len(prefills) else 1
        chosen = self._in_turn(bulk, (num_tokens + 1) // 2 if prompts else num_tokens)
        return Restrained(
            [request for request in decodes if request.class_rank < BULK],
            [request for request in prefills if request.class_rank < BULK],
            chosen,
            prompts,
            num_tokens - len(chosen),
        )

    def _in_turn(self, bulk: list[Request], count: int) -> list[Request]:
        if len(bulk) <= count:
            return bulk
        start = self._turn % len(bulk)
        self._turn = start + count
        return (bulk + bulk)[start : start + count]
