"""Drafts beside decodes: which running requests guess how many tokens in a step.

Drafts take what nobody else has asked for: rows that may be sampled beside one for each running request,
blocks that are left when every running request could grow by one. Whether they turn out right changes how
fast a request goes and never what it says, see `step_plan.ScheduledChunk`.

With lag 1 the token in flight must be known before anything can be guessed behind it, and with drafts in
flight not even the number of new tokens is. So a request that could draft is left out of a step, and again
while its drafts are verified; one that can't goes on as if it never did.
"""

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.config import SchedulerConfig
from inference_engine.scheduling.inspection import Totals
from inference_engine.scheduling.pace import Pace
from inference_engine.scheduling.reclaim import Reclaimer
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.roster import Roster
from inference_engine.scheduling.step_plan import ScheduledChunk

from .prompt_lookup import PromptLookup
from .worth import DraftWorth


class Drafts:
    """Of one request."""

    def __init__(self, max_drafts: int, lag: int) -> None:
        self.lookup = PromptLookup()
        self.worth = DraftWorth(max_drafts, lag)
        self.was_held = False
        """It was left out of the step before, to draft in this one."""


class Drafter:
    def __init__(
        self, config: SchedulerConfig, roster: Roster, reclaimer: Reclaimer, pace: Pace, totals: Totals
    ) -> None:
        self._config = config
        self._roster = roster
        self._reclaimer = reclaimer
        self._pace = pace
        self._totals = totals
        self._drafts: dict[int, Drafts] = {}
        """Live requests that may draft, by arrival number."""

    @property
    def is_idle(self) -> bool:
        return not self._drafts

    def join(self, request: Request) -> None:
        most = min(request.sampling.num_draft_tokens, self._config.max_draft_tokens)
        if most:
            self._drafts[request.arrival] = Drafts(most, self._config.lag)

    def leave(self, request: Request) -> None:
        self._drafts.pop(request.arrival, None)

    def learn(self, chunk: ScheduledChunk, num_accepted: int) -> None:
        """Its drafts are verified."""
        self._totals.num_accepted_tokens += num_accepted
        self._drafts[chunk.request.arrival].worth.learn(chunk.num_drafts, num_accepted)

    def draft(self, decodes: list[Request], step: int) -> tuple[list[Request], list[ScheduledChunk]]:
        """(those that go on without drafts, chunks of those that have some); who is left out is in
        neither."""
        num_rows = self._config.max_running - len(self._roster.running)
        row_share = self._pace.row_share(len(decodes))
        others: list[Request] = []
        chunks: list[ScheduledChunk] = []
        for request in decodes:
            drafts = self._drafts.get(request.arrival)
            guess = self._guess(request, drafts, num_rows, row_share) if drafts is not None else []
            if drafts is None or not guess:
                others.append(request)
            elif request.num_pending:
                drafts.was_held = True
            else:
                chunks.append(schedule_drafts(request, step, guess))
                num_rows -= len(guess)
        self._totals.num_drafted_tokens += sum(chunk.num_drafts for chunk in chunks)
        return others, chunks

    def _guess(self, request: Request, drafts: Drafts, num_rows: int, row_share: float) -> list[int]:
        known = drafts.lookup
        known.append(request.ids_between(known.num_ids, request.num_known))
        num_left = request.max_known - request.num_expected - 1
        most = min(drafts.worth.count(request.num_known, row_share), num_left, num_rows)
        guess = _without_stops(known.guess(most), request) if most > 0 else []
        if guess and not request.num_pending:
            guess = guess[: self._room(request, len(guess))]
        if drafts.was_held and not request.num_pending:
            drafts.was_held = False
            if not guess:
                drafts.worth.learn(1, 0)  # the step left out was in vain
        return guess

    def _room(self, request: Request, count: int) -> int:
        """How many drafts the request's blocks hold; one more block is taken for them if any is to spare."""
        end = request.num_scheduled + 1 + count
        if end > len(request.block_table) * BLOCK_SIZE:
            self._reclaimer.spare_block(request)
        return min(count, len(request.block_table) * BLOCK_SIZE - request.num_scheduled - 1)


def schedule_drafts(request: Request, step: int, draft_ids: list[int]) -> ScheduledChunk:
    """Its last token, known, and drafts. How many tokens it will sample isn't known, so none is pending, and
    nothing is left to be scheduled until it is."""
    start = request.num_scheduled
    request.num_scheduled = start + 1
    request.num_chunks += 1
    request.last_step = step
    token_ids = [*request.ids_between(start, start + 1), *draft_ids]
    return ScheduledChunk(request, start, token_ids, request.block_table, True, len(draft_ids))


def _without_stops(guess: list[int], request: Request) -> list[int]:
    """Nothing follows a token that ends the request."""
    for index, token_id in enumerate(guess):
        if token_id in request.stop_ids:
            return guess[:index]
    return guess
