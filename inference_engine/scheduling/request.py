"""One request as the scheduler sees it: what is known, what is scheduled, what is computed."""

from enum import Enum

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import TokenLogprobs
from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams

from .output_matcher import OutputMatcher
from .service_counters import Account

PENDING_TOKEN = -1
"""Stands in a chunk for the token that the step still in flight samples (lag 1)."""

CLASS_RANK = {ServiceClass.INTERACTIVE: 0, ServiceClass.STANDARD: 1, ServiceClass.BULK: 2}
BULK = CLASS_RANK[ServiceClass.BULK]


class RequestState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class Request:
    """Counts along the sequence, with 0 <= computed <= scheduled <= known + pending:

        0 ........ num_computed ........ num_scheduled ........ num_known (+ num_pending)
          KV confirmed         in flight               to be done

    A preempted request falls back to the blocks it kept, so counts can also shrink; `num_reached` never does.
    """

    __slots__ = (
        "account",
        "arrival",
        "attempt",
        "block_hashes",
        "block_table",
        "cached_tokens",
        "choice",
        "class_rank",
        "code",
        "end_ids",
        "finish_reason",
        "group_id",
        "guarded_until",
        "is_let_in_by_age",
        "key_account",
        "key_id",
        "leader",
        "matcher",
        "max_known",
        "max_tokens",
        "num_chunks",
        "num_computed",
        "num_in_flight",
        "num_known",
        "num_pending",
        "num_preemptions",
        "num_prompt",
        "num_published",
        "num_reached",
        "num_recomputed_tokens",
        "num_scheduled",
        "output_charge",
        "output_ids",
        "preempted_at",
        "prompt_ids",
        "prompt_logprobs",
        "queued_clock",
        "queued_tokens",
        "request_id",
        "sampling",
        "service_class",
        "state",
        "stop_ids",
        "tenant_id",
        "wants_logprobs",
        "weight",
    )

    def __init__(self, generate: Generate, *, arrival: int, max_tokens: int, end_ids: frozenset[int]) -> None:
        self.request_id = generate.request_id
        self.attempt = generate.attempt
        self.tenant_id = generate.tenant_id
        self.key_id = generate.key_id
        self.service_class = generate.service_class
        self.class_rank = CLASS_RANK[generate.service_class]
        self.weight = generate.weight
        self.prompt_ids = generate.prompt_ids
        self.output_ids = list(generate.output_ids)
        """Replayed and confirmed output tokens."""
        self.sampling = generate.sampling
        self.wants_logprobs = generate.sampling.logprobs is not None
        self.choice = generate.choice
        self.group_id = generate.group_id
        self.leader: Request | None = None
        """Computes, or has computed, the prompt of this one's group. None: this one is on its own."""
        self.matcher: OutputMatcher | None = None
        """Of a constrained output. The runner's own: nobody else may touch it while steps are in flight."""
        self.max_tokens = max_tokens
        """After clamping to context and pool; replayed tokens count."""
        self.end_ids = end_ids
        self.stop_ids = _stop_ids(generate.sampling, end_ids)
        """Ids that end this request: its own, and the model's unless `ignore_eos`."""
        self.arrival = arrival
        """Sequence number: lower came first."""
        self.state = RequestState.WAITING
        self.finish_reason: FinishReason | None = None
        self.code: Code | None = None
        self._start_counts()

    def _start_counts(self) -> None:
        self.block_table: list[int] = []
        """Only ever appended to, and cut by replacement: a plan in flight may still read the list it has."""
        self.block_hashes: list[bytes] = []
        """Chain hashes of the leading full blocks, as far as they were needed."""
        self.num_published = 0
        """Leading blocks of the table whose hashes have been offered to the prefix index."""
        self.num_prompt = len(self.prompt_ids)
        self.num_known = self.num_prompt + len(self.output_ids)
        self.max_known = self.num_prompt + self.max_tokens
        self.num_in_flight = 0
        """Chunks in steps that have not been applied."""
        self.num_pending = 0
        """Output tokens that steps in flight will sample."""
        self.num_scheduled = 0
        self.num_computed = 0
        self.num_reached = 0
        """The furthest position ever computed, blocks kept or not."""
        self.preempted_at = -1
        """`num_scheduled` when last preempted: not again until more than that is computed."""
        self.guarded_until = -1
        """Nor for an equal of its class until more than this is: it has the blocks for that much."""
        self.queued_clock: float | None = None
        """What the policy's token clock showed when it first joined the queue."""
        self.is_let_in_by_age = False
        self.account = self.key_account = Account()
        """What it is served is charged to: its tenant's and its key's, once a policy that charges has it."""
        self.output_charge = 0.0
        """For one output token of it."""
        self.queued_tokens = 0
        """Tokens it had to compute when it last joined the queue."""
        self.cached_tokens = 0
        self.prompt_logprobs: list[TokenLogprobs] | None = None
        """Of the prompt's tokens from the second on, as they are computed, until they are handed out."""
        if self.sampling.prompt_logprobs is not None:
            self.prompt_logprobs = []
        self.num_chunks = 0
        self.num_preemptions = 0
        self.num_recomputed_tokens = 0

    @property
    def known_ids(self) -> list[int]:
        return self.prompt_ids + self.output_ids

    @property
    def num_remaining(self) -> int:
        """Tokens that could be scheduled now."""
        return self.num_known + self.num_pending - self.num_scheduled

    @property
    def is_ending(self) -> bool:
        """The token in flight is its last, whatever it turns out to be."""
        return self.num_pending > 0 and self.num_known + self.num_pending >= self.max_known

    @property
    def is_scoring(self) -> bool:
        """Needs every row of its prompt: computed tokens of others are of no use to it."""
        return self.prompt_logprobs is not None and len(self.prompt_logprobs) < self.num_prompt - 1

    def can_be_preempted_for(self, other: "Request") -> bool:
        """Never twice without progress; for an equal not before as many tokens are new as were computed
        again."""
        is_urgent = other.class_rank < self.class_rank
        return self.num_computed > (self.preempted_at if is_urgent else self.guarded_until)

    def ids_between(self, start: int, end: int) -> list[int]:
        """Known token ids of positions start <= p < end."""
        split = self.num_prompt
        if end <= split:
            return self.prompt_ids[start:end]
        if start >= split:
            return self.output_ids[start - split : end - split]
        return self.prompt_ids[start:] + self.output_ids[: end - split]

    def append_output(self, token_id: int) -> None:
        self.output_ids.append(token_id)
        self.num_known += 1

    def __repr__(self) -> str:
        counts = f"{self.num_computed}/{self.num_scheduled}/{self.num_known}+{self.num_pending}"
        return f"<Request {self.request_id} {self.state.value} {counts} blocks={self.block_table}>"


def _stop_ids(sampling: SamplingParams, end_ids: frozenset[int]) -> frozenset[int]:
    """One set for all that name none of their own."""
    common = frozenset[int]() if sampling.ignore_eos else end_ids
    return common | frozenset(sampling.stop_token_ids) if sampling.stop_token_ids else common
