"""What a scheduler is told once, at its start."""

from dataclasses import dataclass, field

from inference_engine.contract.limits import BLOCK_SIZE


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
    prefill_budget: int = 128
    """Prompt tokens a step beside running decodes."""
    max_waiting: int = 4096
    lag: int = 0
    """Steps that may be in flight while another is planned: 0 or 1."""
    enable_prefix_cache: bool = True
    end_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name in (
            "num_blocks",
            "max_running",
            "context_length",
            "vocab_size",
            "prefill_budget",
            "max_waiting",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.lag not in (0, 1):
            raise ValueError(f"lag is {self.lag}, must be 0 or 1")
        if self.max_step_tokens <= self.max_running:
            raise ValueError(
                f"max_step_tokens is {self.max_step_tokens}, not more than max_running ({self.max_running}): "
                "a step has a token for each decode and at least one for a prefill"
            )

    @property
    def max_request_tokens(self) -> int:
        """Prompt + output tokens of the largest request that context and pool can hold."""
        return min(self.context_length, self.num_blocks * BLOCK_SIZE)
