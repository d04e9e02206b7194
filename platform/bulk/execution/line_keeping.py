"""How one line's answer is kept: in the database, before its request is settled.

While it is made nothing of it is billed: what a worker that dies leaves behind, or an attempt that breaks
off, is overrun in the ledger. The one attempt that is kept is billed, and its row of the ledger kept with it.
"""

import json
import time

from admission.admission import Admission
from bulk.execution.claiming import Claim, ClaimedLine
from bulk.execution.keeping import Answer, Keeper
from bulk.execution.line_results import answered
from bulk.models import LineState
from usage.models import Ending, Source

PATIENCE_S = 3600.0
"""For a first token: bulk yields to whatever is more urgent, however long that takes."""


class ClaimOvertaken(Exception):
    """Somebody else answers this line, or has."""


class LineKeeping:
    def __init__(self, claim: Claim, line: ClaimedLine, request_id: str, keeper: Keeper) -> None:
        self._claim, self._line, self._request_id, self._keeper = claim, line, request_id, keeper

    def admitted(self, admission: Admission) -> None:
        self._admission = admission
        admission.patience_s = PATIENCE_S
        admission.bill_nothing_yet()

    async def keep(self, model: str, body: object, tokens: dict[str, int], finish_reason: str) -> None:
        """`body` is JSON's, `tokens` what the ledger counts. Raises ClaimOvertaken."""
        claim, line = self._claim, self._line
        answer = Answer(
            claim.batch_pk,
            line.pk,
            claim.fence,
            LineState.ANSWERED,
            answered(claim.batch_id, line.number, line.custom_id, self._request_id, body),
            charge=self._charge(tokens, finish_reason),
            model=model,
            **tokens,
        )
        if not await self._keeper.keep(answer):
            raise ClaimOvertaken
        self._admission.bill()

    def _charge(self, tokens: dict[str, int], finish_reason: str) -> str:
        """The ledger's row, should the settlement get lost with this process."""
        row = {
            **self._admission.reservation.fields,
            **{name: str(count) for name, count in tokens.items()},
            "finished_at": str(time.time()),
            "ending": Ending.FINISHED.value,
            "finish_reason": finish_reason,
            "source": Source.AUTHORITATIVE.value,
        }
        return json.dumps(row)
