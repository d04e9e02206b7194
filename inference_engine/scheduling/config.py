"""What a scheduler is told once, at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import ServiceClass

from .policies import POLICIES


@dataclass(frozen=True)
class SchedulerConfig:
    num_blocks: int
    """KV blocks of the pool; their ids are 0 <= block < num_blocks, all usable."""
    max_running: int
    context_length: int
    """Prompt + output tokens."""
    vocab_size: int
    cache_secret: bytes = field(repr=False)
    """Salts the prefix cache; known to this engine alone."""
    max_step_tokens: int = 512
    prefill_budget: int = 80
    """Prompt tokens a step beside running decodes."""
    bulk_tokens: int = 4
    """Tokens of bulk in a step beside decodes that are more urgent."""
    max_waiting: int = 4096
    policy: str = "fair"
    """Who goes next: a name of `policies.POLICIES`."""
    ageing_tokens: int = 65_536
    """Service after which a request has grown as urgent as a new one of the next class: some minutes'
    worth."""
    gap_targets: Mapping[ServiceClass, float] = field(default_factory=dict)
    """Seconds between two tokens of a running request that prefills beside it may not exceed, by class."""
    ttft_targets: Mapping[ServiceClass, float] = field(default_factory=dict)
    """Seconds from a request's arrival to its first token, by class. Gap targets go before."""
    lag: int = 0
    """Steps that may be in flight while another is planned: 0 or 1."""
    max_draft_tokens: int = 8
    """Tokens that a request which asks for it may guess a step; 0: none."""
    enable_prefix_cache: bool = True
    end_ids: frozenset[int] = frozenset()
    embeds: bool = False
    """The model is one for embeddings: requests want a vector, others are refused."""

    def __post_init__(self) -> None:
        for name in (
            "num_blocks",
            "max_running",
            "context_length",
            "vocab_size",
            "prefill_budget",
            "bulk_tokens",
            "max_waiting",
            "ageing_tokens",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.max_draft_tokens < 0:
            raise ValueError(f"max_draft_tokens is {self.max_draft_tokens}, must be at least 0")
        if self.lag not in (0, 1):
            raise ValueError(f"lag is {self.lag}, must be 0 or 1")
        if self.policy not in POLICIES:
            raise ValueError(f"policy is {self.policy!r}, must be one of {', '.join(sorted(POLICIES))}")
        if any(seconds <= 0 for seconds in (*self.gap_targets.values(), *self.ttft_targets.values())):
            raise ValueError("a target must be more than 0 seconds")
        if self.max_step_tokens <= self.max_running:
            raise ValueError(
                f"max_step_tokens is {self.max_step_tokens}, not more than max_running ({self.max_running}): "
                "a step has a token for each decode and at least one for a prefill"
            )

    @property
    def max_request_tokens(self) -> int:
        """Prompt + output tokens of the largest request that context and pool can hold."""
        return min(self.context_length, self.num_blocks * BLOCK_SIZE)
