"""Virtual token counters: what each tenant has been served, divided by its weight (VTC, Sheng et al.,
OSDI'24)."""

CACHED_TOKEN_COST = 0.1
"""Of a prompt token that was found in the prefix cache or forked, not computed."""
PROMPT_TOKEN_COST = 1.0
OUTPUT_TOKEN_COST = 2.0


class Account:
    """Of a tenant, or of one of its keys."""

    __slots__ = ("charged_at", "served")

    def __init__(self) -> None:
        self.served = 0.0
        self.charged_at = 0
        """Number of the step up to which outputs are charged."""

    def lift(self, least: float) -> None:
        """Whoever comes back has no claim on what was given out while it was away."""
        if self.served < least:
            self.served = least


class Accounts(dict[str, Account]):
    """By name, opened when first asked for."""

    def __missing__(self, name: str) -> Account:
        account = self[name] = Account()
        return account
