"""Virtual token counters: what each name has been served, divided by its weight (VTC, Sheng et al.,
OSDI'24)."""

CACHED_TOKEN_COST = 0.1
"""Of a prompt token that was found in the prefix cache or forked, not computed."""
PROMPT_TOKEN_COST = 1.0
OUTPUT_TOKEN_COST = 2.0


class ServiceCounters:
    """Names are those of tenants, or of one tenant's keys."""

    def __init__(self) -> None:
        self._served: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        return self._served.get(name, 0.0)

    def lift(self, name: str, least: float) -> None:
        """Whoever comes back has no claim on what was given out while it was away."""
        if self._served.get(name, 0.0) < least:
            self._served[name] = least

    def charge(self, name: str, service: float) -> None:
        self._served[name] = self._served.get(name, 0.0) + service
