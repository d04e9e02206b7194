"""Where a line's tokens go while they come, and its answer once every choice has ended."""

from admission.admission import Admission
from bulk.execution.line_answers import Asked
from bulk.execution.line_keeping import LineKeeping
from gateway.runs.choice import Choice, Piece
from gateway.runs.run import Run


class LineOutput:
    def __init__(self, asked: Asked, keeping: LineKeeping) -> None:
        self._answer, self._model, self._keeping = asked.answer, asked.order.model, keeping

    async def admitted(self, admission: Admission) -> None:
        self._keeping.admitted(admission)

    async def begin(self, run: Run) -> None:
        self._run = run
        self._answer.begin(run.choices)

    async def emit(self, choice: Choice, piece: Piece) -> None:
        self._answer.take(choice, piece)
        if all(one.finish_reason is not None for one in self._run.choices):
            await self._keep()

    async def _keep(self) -> None:
        """Raises ClaimOvertaken."""
        choices = self._run.choices
        tokens = {
            "prompt_tokens": sum(choice.prompt_tokens for choice in choices),
            "cached_tokens": sum(choice.cached_tokens for choice in choices),
            "output_tokens": sum(choice.num_tokens for choice in choices),
        }
        reasons = sorted({choice.finish_reason or "" for choice in choices})
        await self._keeping.keep(self._model, self._answer.whole(self._run), tokens, ",".join(reasons))
