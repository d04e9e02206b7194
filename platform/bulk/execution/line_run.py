"""One line, from its bytes to its answer: the journey that every request takes, in the bulk class."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from django.utils import timezone

from api_keys.authentication import principal_for
from api_keys.scopes import Scope
from bulk.batches.input_lines import read_line
from bulk.execution.claiming import Claim, ClaimedLine, count_fault
from bulk.execution.database import in_database
from bulk.execution.embedding_line import embed_line, read_embeddings
from bulk.execution.keeping import Answer, Keeper
from bulk.execution.line_answers import READERS
from bulk.execution.line_keeping import ClaimOvertaken, LineKeeping
from bulk.execution.line_output import LineOutput
from bulk.execution.line_results import failed
from bulk.execution.waiting import Wait, wait_after
from bulk.models import LineState
from bulk.public_ids import request_id
from gateway.embeddings.order import ENDPOINT as EMBEDDINGS
from gateway.errors import internal_error
from gateway.runs.journey import Caller, travel
from gateway.services import Services
from tenants.errors import Denied

log = structlog.get_logger(__name__)

READ_AT_ONCE = 4
"""Lines of a claim that are in memory as bytes: one may have megabytes."""


class NotNow(Exception):
    """The line has to wait for longer than its task may last."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class LineRunner:
    """Answers the lines of one claim. Attempts begin before `begins_until`, of the monotonic clock."""

    services: Services
    keeper: Keeper
    claim: Claim
    path: Path
    """Of the input file, or of a copy of it."""
    begins_until: float
    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READ_AT_ONCE))

    async def run(self, line: ClaimedLine) -> None:
        """Returns once the answer is kept, or somebody else's business. Raises NotNow."""
        attempt = 0
        while True:
            try:
                await self._attempt(line, self._request_id(line, attempt))
                return
            except ClaimOvertaken:
                return
            except Denied as denied:
                retried = await self._again_or_fail(line, denied, attempt)
            if retried is None:
                return
            line, attempt = retried, attempt + 1

    async def _again_or_fail(self, line: ClaimedLine, denied: Denied, attempt: int) -> ClaimedLine | None:
        """The line once its time has come again; None: it has failed. Raises NotNow."""
        left_s = (self.claim.expires_at - timezone.now()).total_seconds()
        wait = wait_after(denied, line.num_faults, left_s)
        if wait is None:
            await self._fail(line, denied, self._request_id(line, attempt))
            return None
        if wait.is_fault:
            await in_database(count_fault, self.claim, line)
            line = line._replace(num_faults=line.num_faults + 1)
        await self._wait(wait)
        return line

    async def _wait(self, wait: Wait) -> None:
        if time.monotonic() + wait.seconds > self.begins_until:
            raise NotNow(wait.seconds)
        await asyncio.sleep(wait.seconds)

    async def _attempt(self, line: ClaimedLine, name: str) -> None:
        """Raises Denied, ClaimOvertaken."""
        try:
            await self._travel(line, name)
        except (Denied, ClaimOvertaken):
            raise
        except Exception:
            log.exception("line_broke", batch=self.claim.batch_id, line=line.number)
            raise internal_error() from None

    async def _travel(self, line: ClaimedLine, name: str) -> None:
        claim = self.claim
        principal = await principal_for(claim.key_id, Scope.BATCH)
        caller = Caller(principal, name, claim.address)
        keeping = LineKeeping(claim, line, name, self.keeper)
        if claim.endpoint == EMBEDDINGS:
            async with self._reading:
                order = await read_embeddings(self.services, principal, await self._body(line))
            return await embed_line(self.services, caller, order, keeping)
        async with self._reading:
            body, read = await self._body(line), READERS[claim.endpoint]
            asked = await read(self.services, principal, body, name.removeprefix("req_"))
        await travel(self.services, caller, asked.order, asked.description, LineOutput(asked, keeping))

    async def _body(self, line: ClaimedLine) -> bytes:
        return bytes(read_line(await asyncio.to_thread(self._read, line)).body)

    def _read(self, line: ClaimedLine) -> bytes:
        with open(self.path, "rb") as content:
            content.seek(line.offset)
            return content.read(line.length)

    async def _fail(self, line: ClaimedLine, denied: Denied, name: str) -> None:
        claim = self.claim
        result = failed(claim.batch_id, line.number, line.custom_id, name, denied)
        await self.keeper.keep(Answer(claim.batch_pk, line.pk, claim.fence, LineState.FAILED, result))

    def _request_id(self, line: ClaimedLine, attempt: int) -> str:
        name = request_id(self.claim.batch_id, line.number, self.claim.fence)
        return f"{name}_{attempt}" if attempt else name
