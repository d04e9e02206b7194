"""The hash chain: what a record's hash covers, and where a chain is broken. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Protocol

from audit.models import Values

FIRST_PREVIOUS = "0" * 64


class Link(Protocol):
    """A record as the chain sees it."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    tenant_id: int | None
    before: Values | None
    after: Values | None
    request_id: str
    address: str
    previous_hash: str
    hash: str


def link_hash(link: Link) -> str:
    """SHA-256 over everything in the record but its own hash, as canonical JSON."""
    covered = (
        link.id,
        link.at.astimezone(UTC).isoformat(timespec="microseconds"),
        link.actor,
        link.action,
        link.subject,
        link.tenant_id,
        canonical(link.before),
        canonical(link.after),
        link.request_id,
        link.address,
        link.previous_hash,
    )
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object) -> object:
    """A database may give 1.0 back as 1 and 1e20 as an integer: whole numbers are integers here."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    return value


def find_break(links: Iterable[Link], heads: Mapping[int, str]) -> str | None:
    """What is wrong with the first broken record, None for a sound chain.

    `links` come by id, from the first; `heads` are hashes by id that were written outside the database.
    """
    last_id, last_hash = 0, FIRST_PREVIOUS
    for link in links:
        problem = _problem(link, last_id, last_hash, heads)
        if problem is not None:
            return problem
        last_id, last_hash = link.id, link.hash
    newest = max(heads, default=0)
    if newest > last_id:
        return f"record {last_id + 1} is missing: the chain once reached record {newest}"
    return None


def _problem(link: Link, last_id: int, last_hash: str, heads: Mapping[int, str]) -> str | None:
    if link.id != last_id + 1:
        return f"record {last_id + 1} is missing"
    if link.hash != link_hash(link):
        return f"record {link.id} was changed"
    if link.previous_hash != last_hash:
        return f"record {link.id} does not follow record {last_id}"
    if heads.get(link.id, link.hash) != link.hash:
        return f"record {link.id} was rewritten: the head written outside the database is another"
    return None
