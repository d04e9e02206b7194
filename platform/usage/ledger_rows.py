"""A stream entry as a ledger row, and back in time: what an abandoned reservation tells about its request."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from inference_engine.contract.codes import Code
from usage.models import Ending, LedgerEntry, Source

Fields = Mapping[str, str]

MAX_TOKENS = 2**31 - 1
ENGINE_USAGE = "engine_usage:"
TOKEN_FIELDS = ("prompt_tokens", "cached_tokens", "output_tokens")


class UnreadableRow(ValueError):
    """An entry that no row can be made of."""


def decoded(entry: Mapping[bytes, bytes]) -> dict[str, str]:
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in entry.items()
    }


def ledger_entry(fields: Fields) -> LedgerEntry:
    """Raises UnreadableRow. Texts are cut to their columns: a row is worth more than the end of a name."""
    try:
        return LedgerEntry(**{name: read(fields.get(name, "")) for name, read in _READERS.items()})
    except (ValueError, OverflowError, TypeError) as error:
        raise UnreadableRow(str(error)) from error


def abandoned_row(fields: Fields, now: float) -> dict[str, str]:
    """The settlement of a reservation whose gateway is gone, from whoever saw more of the request.

    The last renewal left the gateway's count; an engine that outlived the gateway wrote `engine_usage:...`,
    a field for each choice.
    """
    seen = engine_tokens(fields)
    return {
        **{name: str(max(_known(fields, name), seen[name])) for name in TOKEN_FIELDS},
        "finished_at": str(now),
        "ending": Ending.FAILED.value,
        "code": Code.INTERNAL_ERROR.value,
        "source": Source.ESTIMATED.value,
    }


def engine_tokens(fields: Fields) -> dict[str, int]:
    """Sums over the choices that engines wrote down; a prompt counts once for its group.

    Each value: attempt, prompt, cached and output tokens, group.
    """
    prompts: dict[str, tuple[int, int]] = {}
    output_tokens = 0
    for name, value in fields.items():
        if name.startswith(ENGINE_USAGE):
            _, prompt, cached, output, group = value.split(" ", 4)
            prompts[group] = max(prompts.get(group, (0, 0)), (int(prompt), int(cached)))
            output_tokens += int(output)
    sums = (sum(prompt for prompt, _ in prompts.values()), sum(cached for _, cached in prompts.values()))
    return dict(zip(TOKEN_FIELDS, (*sums, output_tokens), strict=True))


def _known(fields: Fields, name: str) -> int:
    value = fields.get(name, "")
    return int(value) if value.isdecimal() else 0


def _id(value: str) -> int:
    number = int(value)
    if not 0 <= number < 2**63:
        raise ValueError("an id that no column holds")
    return number


def _text(length: int) -> Callable[[str], str]:
    return lambda value: _without_nul(value)[:length]


def _required(length: int) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not value:
            raise ValueError("a required field is missing")
        return _text(length)(value)

    return read


def _tokens(value: str) -> int:
    return min(max(int(value or 0), 0), MAX_TOKENS)


def _time(value: str) -> datetime:
    return datetime.fromtimestamp(float(value), UTC)


def _time_or_none(value: str) -> datetime | None:
    return _time(value) if value else None


def _number_or_none(value: str) -> float | None:
    return float(value) if value else None


def _object(value: str) -> dict[str, Any]:
    """Cleaned once it is read: a client may write a NUL's escape as plain text, and that is no NUL."""
    found = json.loads(value) if value else {}
    if not isinstance(found, dict):
        return {}
    return {_without_nul(name): _without_nul(each) for name, each in found.items()}


def _without_nul(value: Any) -> Any:
    return value.replace("\x00", "") if isinstance(value, str) else value


_READERS: dict[str, Callable[[str], Any]] = {
    "request_id": _required(128),
    "tenant_id": _id,
    "tenant_name": _text(100),
    "key_id": _text(32),
    "key_name": _text(100),
    "model": _text(200),
    "endpoint": _text(100),
    "prompt_tokens": _tokens,
    "cached_tokens": _tokens,
    "output_tokens": _tokens,
    "overrun_tokens": _tokens,
    "admitted_at": _time,
    "first_token_at": _time_or_none,
    "finished_at": _time,
    "queue_ms": _number_or_none,
    "ending": Ending,
    "code": _text(64),
    "finish_reason": _text(32),
    "replica": _text(128),
    "user": _text(512),
    "metadata": _object,
    "source": Source,
}
