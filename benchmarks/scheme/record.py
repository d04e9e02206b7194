"""What one run saw: its steps, and when each request got its tokens. Seconds since the run began."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Step:
    num_tokens: int
    """Computed, useful or not."""
    places: int
    busy: int
    """Of the places, those whose request came forward in this step."""
    reserved_slots: int
    """KV slots that nobody else can have."""
    used_slots: int
    """Of these, the slots of tokens that there are: of prompts, computed or not yet, and of outputs."""


@dataclass(slots=True)
class Timeline:
    arrived_at: float
    tokens_at: list[float] = field(default_factory=list)

    @property
    def ttft(self) -> float:
        return self.tokens_at[0] - self.arrived_at

    def gaps(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        """Between two tokens, of gaps that end within [since, until]."""
        return [later - sooner for sooner, later in pairwise(self.tokens_at) if since <= later <= until]


@dataclass(slots=True)
class Run:
    steps: list[Step] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def output_tokens(self) -> int:
        return sum(len(timeline.tokens_at) for timeline in self.timelines)

    @property
    def tokens_per_s(self) -> float:
        return round(self.output_tokens / self.seconds, 1)

    @property
    def computed_tokens(self) -> int:
        return sum(step.num_tokens for step in self.steps)

    @property
    def idle_rows(self) -> float:
        """Fraction of all places of all steps."""
        places = sum(step.places for step in self.steps)
        return round(1 - sum(step.busy for step in self.steps) / places, 4)

    @property
    def kv_waste(self) -> float:
        """Fraction of the reserved slots that no token needed, over all steps."""
        reserved = sum(step.reserved_slots for step in self.steps)
        return round(1 - sum(step.used_slots for step in self.steps) / reserved, 4)


def percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
