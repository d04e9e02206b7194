"""What the loop last knew of itself, for threads that must not touch the scheduler."""

from dataclasses import dataclass, field

from inference_engine.contract.events import Stats


@dataclass(frozen=True, slots=True)
class Progress:
    """What the loop last knew of itself. Replaced as a whole, so other threads may read it at any time."""

    step: int = 0
    has_work: bool = False
    stats: Stats = field(default_factory=Stats)
    num_compiling: int = 0
    """Requests whose constraints are being compiled: they wait for no step."""
