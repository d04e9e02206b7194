"""Answers of lines go into the database, those that come at about the same time in one transaction."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import F

from bulk.execution.database import in_database
from bulk.models import Batch, Line, LineState

log = structlog.get_logger(__name__)

GATHER_S = 0.25
MOST_AT_ONCE = 200
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one line, and the claim under which it was made."""

    batch_pk: int
    line_pk: int
    fence: int
    state: LineState
    result: str
    charge: str = ""
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class Keeper:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Answer, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None

    async def keep(self, answer: Answer) -> bool:
        """Whether it counts: once this says True it is in the output, once and for all. False: the claim was
        overtaken."""
        kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, kept))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return await asyncio.shield(kept)

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_S)
            now, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            for (_, kept), counts in zip(now, await _until_written([a for a, _ in now]), strict=True):
                if not kept.done():
                    kept.set_result(counts)


async def _until_written(answers: list[Answer]) -> list[bool]:
    """A database that is away is waited for: the leases tell when it took too long."""
    while True:
        try:
            return await in_database(write_answers, answers)
        except (DatabaseError, InterfaceError) as error:
            log.warning("answers_not_written", num_lines=len(answers), error=str(error))
            await asyncio.sleep(RETRY_S)


@transaction.atomic
def write_answers(answers: list[Answer]) -> list[bool]:
    kept = [_write_one(answer) for answer in answers]
    of_batch: dict[int, list[Answer]] = defaultdict(list)
    for answer, counts in zip(answers, kept, strict=True):
        if counts:
            of_batch[answer.batch_pk].append(answer)
    for batch_pk, counted in sorted(of_batch.items()):
        _count(batch_pk, counted)
    return kept


def _write_one(answer: Answer) -> bool:
    claimed = Line.objects.filter(pk=answer.line_pk, state=LineState.CLAIMED, fence=answer.fence)
    written = claimed.update(state=answer.state, result=answer.result, charge=answer.charge, lease_until=None)
    return bool(written)


def _count(batch_pk: int, answers: list[Answer]) -> None:
    states = Counter(answer.state for answer in answers)
    batch = Batch.objects.filter(pk=batch_pk)
    batch.update(
        num_completed=F("num_completed") + states[LineState.ANSWERED],
        num_failed=F("num_failed") + states[LineState.FAILED],
        prompt_tokens=F("prompt_tokens") + sum(answer.prompt_tokens for answer in answers),
        cached_tokens=F("cached_tokens") + sum(answer.cached_tokens for answer in answers),
        output_tokens=F("output_tokens") + sum(answer.output_tokens for answer in answers),
    )
    if model := next((answer.model for answer in answers if answer.model), ""):
        batch.filter(model="").update(model=model)
