"""Refusals leave no ledger row; they are counted here."""

from prometheus_client import Counter

ADMITTED = Counter("octavo_requests_admitted_total", "Requests that passed the gate.", ["endpoint"])
DENIED = Counter("octavo_requests_denied_total", "Requests that the gate refused.", ["endpoint", "code"])
