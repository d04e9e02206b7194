"""Prometheus figures of one engine, on a loopback port of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference_engine.contract.events import Stats
from inference_engine.scheduling.step_plan import StepPlan

log = structlog.get_logger(__name__)

_STEP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.4, 0.8, 2.0)
_POWERS_OF_TWO = tuple(2**n for n in range(11))
_GAUGES = {
    "num_waiting": "Requests that wait for their first step",
    "num_running": "Requests that hold KV blocks",
    "waiting_tokens": "Tokens still to be prefilled",
    "blocks_total": "KV blocks",
    "blocks_free": "KV blocks that hold nothing",
    "blocks_cached": "KV blocks kept as prefix cache",
    "blocks_referenced": "KV blocks of running requests",
    "blocks_quarantined": "KV blocks that wait for a step in flight",
}
_COUNTERS = {
    "num_steps": "Steps completed",
    "prompt_tokens": "Prompt tokens of accepted requests, once for all choices of one",
    "cached_prompt_tokens": "Prompt tokens found in the prefix cache",
    "output_tokens": "Tokens sampled",
    "num_accepted": "Requests accepted",
    "num_refused": "Requests refused",
    "num_finished": "Requests that ran to their end",
    "num_aborted": "Requests aborted",
    "num_failed": "Requests failed",
    "num_preemptions": "Preemptions",
    "num_computed_tokens": "Tokens computed, those computed again included",
    "num_recomputed_tokens": "Tokens computed again after preemptions",
    "num_drafted_tokens": "Tokens guessed by prompt lookup",
    "num_accepted_tokens": "Guessed tokens that were right",
}


class StepMetrics:
    """Observed once a step in the loop's thread; everything else is read from Stats when scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "octavo_engine_step_seconds", "Duration of a step", buckets=_STEP_SECONDS, registry=registry
        )
        self._rows = Histogram(
            "octavo_engine_step_rows", "Requests in a step", buckets=_POWERS_OF_TWO, registry=registry
        )
        self._tokens = Histogram(
            "octavo_engine_step_tokens", "Tokens in a step", buckets=_POWERS_OF_TWO, registry=registry
        )

    def observe(self, plan: StepPlan, seconds: float) -> None:
        self._seconds.observe(seconds)
        self._rows.observe(len(plan.chunks))
        self._tokens.observe(plan.num_tokens)


class StatsCollector(Collector):
    def __init__(self, stats: Callable[[], Stats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(_metric_name(name), text, value=getattr(stats, name))
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(_metric_name(name), text, value=getattr(stats, name))


def _metric_name(field: str) -> str:
    return "octavo_engine_" + field.removeprefix("num_")


@contextmanager
def exported(port: int | None, registry: CollectorRegistry, stats: Callable[[], Stats]) -> Iterator[None]:
    """Serve plain text while inside, on loopback only. Without a port, serve nothing."""
    if port is None:
        yield
        return
    registry.register(StatsCollector(stats))
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    log.info("metrics", port=server.server_port)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
