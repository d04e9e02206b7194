"""Ledger rows made by hand."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from usage.models import Ending, LedgerEntry, Source

MakeRow = Callable[..., LedgerEntry]


@pytest.fixture
def row() -> MakeRow:
    """row("r1", "2026-11-30T10:15:00", tenant_id=8): 7 + 3 tokens unless it says more."""

    def make(request_id: str, admitted_at: str = "2026-11-30T10:15:00", **changes: Any) -> LedgerEntry:
        at = datetime.fromisoformat(admitted_at).replace(tzinfo=UTC)
        plain = {
            "request_id": request_id,
            "tenant_id": 7,
            "tenant_name": "Acme",
            "key_id": "k",
            "key_name": "key",
            "model": "m",
            "endpoint": "/v1/completions",
            "prompt_tokens": 7,
            "output_tokens": 3,
            "admitted_at": at,
            "finished_at": at + timedelta(seconds=2),
            "ending": Ending.FINISHED.value,
            "source": Source.AUTHORITATIVE.value,
        }
        return LedgerEntry(**{**plain, **changes})

    return make
