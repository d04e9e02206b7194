"""What follows the output of a constrained request. The scheduler only keeps it with its request."""

from collections.abc import Sequence
from typing import Any, Protocol


class OutputMatcher(Protocol):
    """Its state is a function of the output tokens it has consumed, so it survives preemption untouched."""

    @property
    def num_consumed(self) -> int: ...

    def fill(self, row: Any) -> None:
        """Write the next token's mask."""

    def fill_drafts(self, draft_ids: Sequence[int], rows: Any) -> int:
        """Masks before and after each draft allowed; returns how many those are."""

    def advance(self, token_id: int) -> None:
        """Consume an output token."""

    def roll_back(self, num_tokens: int) -> None:
        """Forget the last ones."""
