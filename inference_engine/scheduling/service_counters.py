"""Virtual token counters: what each tenant has been served, divided by its weight (VTC, Sheng et al.,
OSDI'24)."""

from inference_engine.contract.requests import Generate

from .progress import Progress

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


UNCHARGED = Account()
"""Of a request that no policy charges for: never written to."""


class Served(Progress):
    """A request as one that is charged for; between its progress and the rest, for the processor's cache."""

    __slots__ = ("account", "key_account", "num_charged", "weight")

    def __init__(self, generate: Generate, max_tokens: int, end_ids: frozenset[int]) -> None:
        super().__init__(generate, max_tokens, end_ids)
        self.weight = generate.weight
        self.account = self.key_account = UNCHARGED
        """What it is served is charged to: its tenant's and its key's, once a policy that charges has it."""
        self.num_charged = 0
        """Known tokens that have been charged for."""

    def charge(self, cost: float) -> None:
        cost /= self.weight
        self.account.served += cost
        self.key_account.served += cost

    def charge_outputs(self) -> None:
        """Those that came since the last time."""
        num_new = self.num_known - self.num_charged
        if num_new:
            self.num_charged = self.num_known
            self.charge(num_new * OUTPUT_TOKEN_COST)
