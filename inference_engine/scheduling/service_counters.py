"""Virtual token counters: what each tenant has been served, divided by its weight (VTC, Sheng et al.,
OSDI'24)."""

CACHED_TOKEN_COST = 0.1
"""Of a prompt token that was found in the prefix cache or forked, not computed."""
PROMPT_TOKEN_COST = 1.0
OUTPUT_TOKEN_COST = 2.0


class Account:
    """Of a tenant, or of one of its keys."""

    __slots__ = ("served",)

    def __init__(self) -> None:
        self.served = 0.0

    def lift(self, least: float) -> None:
        """Whoever comes back has no claim on what was given out while it was away."""
        if self.served < least:
            self.served = least
