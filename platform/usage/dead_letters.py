"""Entries put aside because no row could be made of them: each is a request that nobody is billed for.

They wait beside their stream (usage/stream.py) until they can be read: by a later version, or without a field
that nothing is counted by.
"""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import redis

from usage.ledger_rows import UnreadableRow, decoded, ledger_entry
from usage.services import insert_rows
from usage.stream import all_stream_keys, dead_letter_key

CLEARABLE = ("metadata", "user", "queue_ms", "first_token_at")
"""Fields that may be empty without changing what is billed."""
AT_ONCE = 100


class Replayed(NamedTuple):
    stream: str
    entry_id: str
    request_id: str
    problem: str
    """Empty: it is in the ledger."""


def replay(client: redis.Redis, cleared: Collection[str] = ()) -> Iterator[Replayed]:
    """Each of them tried again; what the ledger has is removed here. `cleared` are left empty in rows that
    can't be written with them. Raises RedisError and database errors; the next call goes on."""
    for stream in map(dead_letter_key, all_stream_keys()):
        for entry_id, entry in _entries(client, stream):
            fields = decoded(entry)
            problem = _problem(fields)
            if problem and cleared:
                problem = _problem({**fields, **dict.fromkeys(cleared, "")})
            if not problem:
                client.xdel(stream, entry_id)
            yield Replayed(stream, entry_id.decode(), fields.get("request_id", ""), problem)


def _entries(client: redis.Redis, stream: str) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    after = "-"
    while page := _page(client, stream, after):
        yield from page
        after = f"({page[-1][0].decode()}"


def _page(client: redis.Redis, stream: str, after: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    found: Any = client.xrange(stream, after, "+", count=AT_ONCE)
    return list(found)


def _problem(fields: dict[str, str]) -> str:
    try:
        refused = insert_rows([ledger_entry(fields)])
    except UnreadableRow as error:
        return str(error)
    return "the database refuses it" if refused else ""
