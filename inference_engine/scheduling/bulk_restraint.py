"""How much of a step bulk gets beside requests that somebody waits for: little, so that their gaps stay.

A step takes as long as its tokens make it. While anything more urgent decodes, bulk has a few tokens in each
step, half of them for prompts if there are any, and its decodes take turns. Alone it has all there is.
"""

from .request import BULK, Request


class BulkRestraint:
    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._turn = 0

    def hold_back(
        self, decodes: list[Request], prefills: list[Request], budget: int
    ) -> tuple[list[Request], list[Request], int]:
        """Decodes and prefills of this step, and the budget of the latter. Who is left out is next."""
        bulk = [request for request in decodes if request.class_rank == BULK]
        num_prompts = sum(request.class_rank == BULK for request in prefills)
        if len(bulk) == len(decodes) or not (bulk or num_prompts):
            return decodes, prefills, budget
        chosen = self._in_turn(bulk, (self._num_tokens + 1) // 2 if num_prompts else self._num_tokens)
        decodes = [request for request in decodes if request.class_rank < BULK] + chosen
        if len(prefills) > num_prompts:  # an urgent one makes the step long anyway, and shares go by class
            return decodes, prefills, budget
        left = min(budget, self._num_tokens - len(chosen))
        return decodes, prefills if left else [], left

    def _in_turn(self, bulk: list[Request], count: int) -> list[Request]:
        if len(bulk) <= count:
            return bulk
        start = self._turn % len(bulk)
        self._turn = start + count
        return (bulk + bulk)[start : start + count]
