"""Moves rows from the streams into the ledger: read, insert where the request id is new, then acknowledge.

Killed between insert and acknowledgement it reads the same entries again, and the database takes none twice.
While the database is away the entries wait where they are.
"""

from typing import Any, NamedTuple

import redis
import structlog
from redis.exceptions import ResponseError

from usage.ledger_rows import UnreadableRow, decoded, ledger_entry
from usage.models import LedgerEntry
from usage.services import insert_rows
from usage.stream import CONSUMER, GROUP, all_stream_keys, dead_letter_key

log = structlog.get_logger(__name__)

BATCH_PER_STREAM = 100
NEW, PENDING = ">", "0"


class Entry(NamedTuple):
    stream: str
    entry_id: bytes
    fields: dict[Any, Any]
    """bytes to bytes."""


class LedgerWriter:
    """One consumer of all streams. Raises RedisError and database errors; the next call goes on."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._streams = all_stream_keys()
        self._is_prepared = False
        self._may_have_pending = True

    def write_some(self, block_ms: int) -> int:
        """Write what is there, waiting for it up to block_ms; answers how many entries left the streams."""
        if not self._is_prepared:
            self._create_groups()
            self._is_prepared = True
        entries = self._next_entries(block_ms)
        if entries:
            was_pending, self._may_have_pending = self._may_have_pending, True
            self._write(entries)
            self._may_have_pending = was_pending
        return len(entries)

    def _next_entries(self, block_ms: int) -> list[Entry]:
        try:
            if self._may_have_pending:
                pending = self._read(PENDING, None)
                if pending:
                    return pending
                self._may_have_pending = False
            return self._read(NEW, block_ms)
        except ResponseError:  # NOGROUP: Redis came back without them
            self._is_prepared = False
            raise

    def _create_groups(self) -> None:
        with self._redis.pipeline(transaction=False) as pipeline:
            for stream in self._streams:
                pipeline.xgroup_create(stream, GROUP, id="0", mkstream=True)
            answers = pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and "BUSYGROUP" not in str(answer):
                raise answer

    def _read(self, start: str, block_ms: int | None) -> list[Entry]:
        wanted: dict[Any, Any] = dict.fromkeys(self._streams, start)
        answer: Any = self._redis.xreadgroup(GROUP, CONSUMER, wanted, count=BATCH_PER_STREAM, block=block_ms)
        pairs = answer.items() if isinstance(answer, dict) else answer or []
        return [
            Entry(stream.decode(), entry_id, fields or {})
            for stream, batch in pairs
            for entry_id, fields in batch
        ]

    def _write(self, entries: list[Entry]) -> None:
        by_request: dict[str, Entry] = {}
        rows: list[LedgerEntry] = []
        dead: list[Entry] = []
        for entry in entries:
            if not entry.fields:
                continue  # deleted meanwhile; only to be acknowledged
            try:
                row = ledger_entry(decoded(entry.fields))
            except UnreadableRow:
                dead.append(entry)
                continue
            by_request[row.request_id] = entry
            rows.append(row)
        dead += [by_request[row.request_id] for row in insert_rows(rows)]
        self._acknowledge(entries, dead)

    def _acknowledge(self, entries: list[Entry], dead: list[Entry]) -> None:
        with self._redis.pipeline(transaction=False) as pipeline:
            for entry in dead:
                log.error("ledger_entry_unreadable", stream=entry.stream, entry=entry.entry_id.decode())
                pipeline.xadd(dead_letter_key(entry.stream), entry.fields)
            for entry in entries:
                pipeline.xack(entry.stream, GROUP, entry.entry_id)
                pipeline.xdel(entry.stream, entry.entry_id)
            pipeline.execute()
