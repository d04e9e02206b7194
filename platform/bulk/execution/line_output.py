"""Where a line's answer goes: into the database, before its request is settled.

While it is made nothing of it is billed: what a worker that dies leaves behind, or an attempt that breaks
off, is overrun in the ledger. The one attempt that is kept is billed, and its row of the ledger kept with it.
"""

import json
import time

from admission.admission import Admission
from bulk.execution.claiming import Claim, ClaimedLine
from bulk.execution.keeping import Answer, Keeper
from bulk.execution.line_answers import Asked
from bulk.execution.line_results import answered
from bulk.models import LineState
from gateway.runs.choice import Choice, Piece
from gateway.runs.run import Run
from usage.models import Ending, Source

PATIENCE_S = 3600.0
"""For a first token: bulk yields to whatever is more urgent, however long that takes."""


class ClaimOvertaken(Exception):
    """Somebody else answers this line, or has."""


class LineOutput:
    def __init__(
        self, claim: Claim, line: ClaimedLine, request_id: str, asked: Asked, keeper: Keeper
    ) -> None:
        self._claim, self._line, self._request_id = claim, line, request_id
        self._answer, self._order, self._keeper = asked.answer, asked.order, keeper

    async def admitted(self, admission: Admission) -> None:
        self._admission = admission
        admission.patience_s = PATIENCE_S
        admission.bill_nothing_yet()

    async def begin(self, run: Run) -> None:
        self._run = run
        self._answer.begin(run.choices)

    async def emit(self, choice: Choice, piece: Piece) -> None:
        self._answer.take(choice, piece)
        if all(one.finish_reason is not None for one in self._run.choices):
            await self._keep()

    async def _keep(self) -> None:
        """Raises ClaimOvertaken."""
        body = self._answer.whole(self._run)
        tokens = {
            "prompt_tokens": sum(choice.prompt_tokens for choice in self._run.choices),
            "cached_tokens": sum(choice.cached_tokens for choice in self._run.choices),
            "output_tokens": sum(choice.num_tokens for choice in self._run.choices),
        }
        claim, line = self._claim, self._line
        answer = Answer(
            claim.batch_pk,
            line.pk,
            claim.fence,
            LineState.ANSWERED,
            answered(claim.batch_id, line.number, line.custom_id, self._request_id, body),
            charge=self._charge(tokens),
            model=self._order.model,
            **tokens,
        )
        if not await self._keeper.keep(answer):
            raise ClaimOvertaken
        self._admission.bill()

    def _charge(self, tokens: dict[str, int]) -> str:
        """The ledger's row, should the settlement get lost with this process."""
        reasons = {choice.finish_reason or "" for choice in self._run.choices}
        row = {
            **self._admission.reservation.fields,
            **{name: str(count) for name, count in tokens.items()},
            "finished_at": str(time.time()),
            "ending": Ending.FINISHED.value,
            "finish_reason": ",".join(sorted(reasons)),
            "source": Source.AUTHORITATIVE.value,
        }
        return json.dumps(row)
