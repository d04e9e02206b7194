"""Stored responses, for code on an event loop: two threads of their own read, one writes.

A response is written once, after its last token and before its last event, so a client that has read the end
can continue it. Those that end together are one transaction. A database that can't take it in time costs the
client the stored copy, never the answer: the object then says `"store": false`.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections

from conversations import selectors, services
from conversations.models import StoredResponse
from gateway.responses.metrics import NOT_KEPT
from tenants.errors import store_unavailable

log = structlog.get_logger("gateway")

ResultT = TypeVar("ResultT")

PATIENCE_S = 3.0
MAX_WAITING = 1000
MAX_BATCH = 64

Written = asyncio.Future[bool]


class ResponseStore:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="response-reader")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="response-writer")
        self._waiting: list[tuple[StoredResponse, Written]] = []
        self._writing: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """What waits to be written is written."""
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=PATIENCE_S)
        self._readers.shutdown(wait=False)
        self._writer.shutdown(wait=False)

    # reading; all raise STORE_UNAVAILABLE

    async def find(self, tenant_id: str, response_id: str) -> StoredResponse | None:
        return await self._read(lambda: selectors.find_response(int(tenant_id), response_id))

    async def conversation(self, tenant_id: str, response_id: str) -> list[StoredResponse] | None:
        return await self._read(lambda: selectors.conversation_up_to(int(tenant_id), response_id))

    async def delete(self, tenant_id: str, response_id: str) -> bool:
        return await self._read(lambda: services.delete_response(int(tenant_id), response_id))

    async def _read(self, work: Callable[[], ResultT]) -> ResultT:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, _with_connection, work)
        except (DatabaseError, InterfaceError) as error:
            log.warning("responses_unreachable", error=str(error))
            raise store_unavailable() from error

    # writing

    async def keep(self, response: StoredResponse) -> bool:
        """Whether it is in the database now. False: nobody may count on it."""
        is_kept = len(self._waiting) < MAX_WAITING and await self._written(response)
        if not is_kept:
            NOT_KEPT.inc()
            log.warning("response_not_kept", response=response.pk)
        return is_kept

    async def _written(self, response: StoredResponse) -> bool:
        written: Written = asyncio.get_running_loop().create_future()
        self._waiting.append((response, written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        done, _ = await asyncio.wait({written}, timeout=PATIENCE_S)
        return bool(done) and written.result()

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            kept = await self._write([response for response, _ in batch])
            for response, written in batch:
                if not written.done():
                    written.set_result(response.pk in kept)

    async def _write(self, responses: list[StoredResponse]) -> set[str]:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._writer, _with_connection, lambda: services.keep(responses)
            )
        except Exception as error:  # whatever it is, those who wait must hear of it
            log.warning("responses_not_written", error=str(error), num_responses=len(responses))
            return set()


def _with_connection(work: Callable[[], ResultT]) -> ResultT:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
