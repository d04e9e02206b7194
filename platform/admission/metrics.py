"""What the gate does. Refusals leave no ledger row; they are counted here."""

from prometheus_client import Counter, Histogram

ADMITTED = Counter("octavo_requests_admitted_total", "Requests that passed the gate.", ["endpoint"])
DENIED = Counter("octavo_requests_denied_total", "Requests that the gate refused.", ["endpoint", "code"])
GATE_SECONDS = Histogram(
    "octavo_gate_seconds",
    "From the gate's decision to a reservation in Redis, or to the refusal.",
    buckets=[
        round(0.0001 * 1.25**step, 6) for step in range(45)
    ],  # 0.1 ms to 1.8 s, each a quarter more than the last
)
