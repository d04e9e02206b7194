"""One chunk's task on the event loop: its lines side by side, its claim kept alive meanwhile."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from bulk.execution.claiming import Claim, claim_chunk, close_chunk, end_claim, renew_claim
from bulk.execution.database import in_database
from bulk.execution.keeping import Keeper
from bulk.execution.line_run import LineRunner, NotNow
from bulk.files.storage import local_path
from gateway.services import Services

log = structlog.get_logger(__name__)

BEGINS_WITHIN_S = 10.0
"""Attempts begin within this time; what has to wait for longer goes back to the database."""
LONGEST_PAUSE_S = 60.0
RENEWALS_A_LEASE = 3


async def run_chunk(
    services: Services, keeper: Keeper, chunk_pk: int, when_half_done: Callable[[], None]
) -> None:
    """Nothing happens if others are at it. `when_half_done` is called in any case, at the end if not before.
    Raises StorageUnavailable."""
    try:
        claim = await in_database(claim_chunk, chunk_pk)
        if claim is None:
            await in_database(close_chunk, chunk_pk)
        else:
            await _run_claim(services, keeper, claim, when_half_done)
    finally:
        when_half_done()


async def _run_claim(
    services: Services, keeper: Keeper, claim: Claim, when_half_done: Callable[[], None]
) -> None:
    not_before: datetime | None = None
    try:
        path = await asyncio.to_thread(local_path, claim.input_file)
        runner = LineRunner(services, keeper, claim, path, time.monotonic() + BEGINS_WITHIN_S)
        not_before = await _run_lines(claim, runner, when_half_done)
    finally:
        await in_database(end_claim, claim, not_before)


async def _run_lines(claim: Claim, runner: LineRunner, when_half_done: Callable[[], None]) -> datetime | None:
    """When what couldn't begin may try again."""
    tasks = [asyncio.create_task(runner.run(line)) for line in claim.lines]
    _call_at_half(tasks, when_half_done)
    renewing = asyncio.create_task(_renew_until_ended(claim))
    until: list[asyncio.Task[Any]] = [renewing, asyncio.create_task(asyncio.wait(tasks))]
    try:
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
    finally:
        renewing.cancel()
        for task in tasks:
            task.cancel()
        endings = await asyncio.gather(*tasks, return_exceptions=True)
    pauses = [ending.seconds for ending in endings if isinstance(ending, NotNow)]
    return timezone.now() + timedelta(seconds=min(*pauses, LONGEST_PAUSE_S)) if pauses else None


def _call_at_half(tasks: list[asyncio.Task[None]], call: Callable[[], None]) -> None:
    num_left = len(tasks) // 2

    def count(_: asyncio.Task[None]) -> None:
        nonlocal num_left
        num_left -= 1
        if not num_left:
            call()

    for task in tasks:
        task.add_done_callback(count)


async def _renew_until_ended(claim: Claim) -> None:
    """Returns when the batch isn't to go on."""
    while True:
        await asyncio.sleep(settings.OCTAVO_BULK_LEASE_SECONDS / RENEWALS_A_LEASE)
        try:
            if not await in_database(renew_claim, claim):
                return
        except (DatabaseError, InterfaceError) as error:
            log.warning("claim_not_renewed", batch=claim.batch_id, error=str(error))
