"""Responses where things go wrong (an engine that dies: test_engine_loss.py)."""

import sqlite3
from contextlib import closing
from typing import Any

from http_service import Service
from octavo_stack import Stack

FIELDS: dict[str, Any] = {"input": "Hello", "ignore_eos": True}


def test_a_database_that_is_locked_costs_the_copy_only(fake_service: Service, fake_stack: Stack) -> None:
    """The answer is complete and says that it isn't kept; with the lock gone the next one is."""
    service = fake_service
    body = {"model": service.model, "max_output_tokens": 5, **FIELDS}
    with closing(sqlite3.connect(fake_stack.home / "db.sqlite3", timeout=20)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = service.answer("/v1/responses", body)
        other.rollback()
    assert answer["store"] is False and answer["usage"]["output_tokens"] == 5
    kept = service.answer("/v1/responses", body)
    assert kept["store"] is True
    found = service.http.get(f"/v1/responses/{kept['id']}", headers=service.headers())
    assert found.json() == kept
