"""Percentiles of a Prometheus histogram between two scrapes."""

import re

Buckets = dict[float, float]


def buckets_of(metrics: str, name: str) -> Buckets:
    """Observations so far, by the upper end of their bucket."""
    found = re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\S+)$', metrics, re.MULTILINE)
    return {float(end): float(count) for end, count in found}


def percentile(before: Buckets, after: Buckets, share: float) -> float:
    """The upper end of the bucket that holds it: never less than the truth."""
    counts = {end: count - before.get(end, 0) for end, count in sorted(after.items())}
    total = counts[float("inf")]
    return next(end for end, count in counts.items() if count >= share * total)
