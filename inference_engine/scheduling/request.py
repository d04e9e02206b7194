"""One request as the scheduler sees it: whose it is, what it asked for, and how it has fared."""

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.requests import Generate, ServiceClass

from .output_matcher import OutputMatcher
from .progress import RequestState
from .service_counters import Served

__all__ = ["BULK", "CLASS_RANK", "PENDING_TOKEN", "Request", "RequestState"]

PENDING_TOKEN = -1
"""Stands in a chunk for the token that the step still in flight samples (lag 1)."""

CLASS_RANK = {ServiceClass.INTERACTIVE: 0, ServiceClass.STANDARD: 1, ServiceClass.BULK: 2}
BULK = CLASS_RANK[ServiceClass.BULK]


class Request(Served):
    __slots__ = (
        "arrival",
        "arrived_at",
        "attempt",
        "block_hashes",
        "cached_tokens",
        "choice",
        "code",
        "embeds",
        "end_ids",
        "finish_reason",
        "group_id",
        "guarded_until",
        "is_let_in_by_age",
        "key_id",
        "leader",
        "matcher",
        "max_tokens",
        "num_preemptions",
        "num_published",
        "num_recomputed_tokens",
        "pooled",
        "preempted_at",
        "queued_clock",
        "queued_tokens",
        "request_id",
        "sampling",
        "service_class",
        "tenant_id",
    )

    def __init__(self, generate: Generate, *, arrival: int, max_tokens: int, end_ids: frozenset[int]) -> None:
        super().__init__(generate, max_tokens, end_ids)
        self.request_id = generate.request_id
        self.attempt = generate.attempt
        self.tenant_id = generate.tenant_id
        self.key_id = generate.key_id
        self.service_class = generate.service_class
        self.class_rank = CLASS_RANK[generate.service_class]
        self.sampling = generate.sampling
        self.embeds = generate.embeds
        self.choice = generate.choice
        self.group_id = generate.group_id
        self.leader: Request | None = None
        """Computes, or has computed, the prompt of this one's group. None: this one is on its own."""
        self.matcher: OutputMatcher | None = None
        """Of a constrained output. The runner's own: nobody else may touch it while steps are in flight."""
        self.pooled: object | None = None
        """Of one that embeds: the sum of its rows so far. The runner's own, too."""
        self.max_tokens = max_tokens
        """After clamping to context and pool; replayed tokens count."""
        self.end_ids = end_ids
        self.arrival = arrival
        """Sequence number: lower came first."""
        self.arrived_at = 0.0
        """Seconds of steps that the engine had run when it came."""
        self.finish_reason: FinishReason | None = None
        self.code: Code | None = None
        self._start_history()

    def _start_history(self) -> None:
        self.block_hashes: list[bytes] = []
        """Chain hashes of the leading full blocks, as far as they were needed."""
        self.num_published = 0
        """Leading blocks of the table whose hashes have been offered to the prefix index."""
        self.preempted_at = -1
        """`num_scheduled` when last preempted: not again until more than that is computed."""
        self.guarded_until = -1
        """Nor for an equal of its class until more than this is: it has the blocks for that much."""
        self.queued_clock: float | None = None
        """What the policy's token clock showed when it first joined the queue."""
        self.is_let_in_by_age = False
        self.queued_tokens = 0
        """Tokens it had to compute when it last joined the queue."""
        self.cached_tokens = 0
        self.num_preemptions = 0
        self.num_recomputed_tokens = 0

    @property
    def counts_prompt(self) -> bool:
        """Of several choices for one prompt the first stands for it in the totals, as in a tenant's usage."""
        return self.choice == 0

    def can_be_preempted_for(self, other: "Request") -> bool:
        """Never twice without progress; for an equal not before as many tokens are new as were computed
        again. What it only found in the prefix cache when it came back is no progress."""
        is_urgent = other.class_rank < self.class_rank
        num_done = min(self.num_computed, self.num_reached)
        return num_done > (self.preempted_at if is_urgent else self.guarded_until)

    def __repr__(self) -> str:
        counts = f"{self.num_computed}/{self.num_scheduled}/{self.num_known}+{self.num_pending}"
        return f"<Request {self.request_id} {self.state.value} {counts} blocks={self.block_table}>"
