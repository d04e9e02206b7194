"""What crosses between the scheduler and whatever runs a step: pure data.

Two of these records are made for every request in every step, so they are structs that the garbage collector
doesn't follow: none is ever part of a cycle.
"""

from msgspec import Struct

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import TokenLogprobs

from .request import PENDING_TOKEN, Request

__all__ = ["PENDING_TOKEN", "RequestUpdate", "SampledToken", "ScheduledChunk", "StepPlan", "StepResult"]


class ScheduledChunk(Struct, gc=False):
    """Positions start <= p < start + len(token_ids) of one request, computed in this step.

    `samples`: the last of `token_ids` is the request's last known (or pending) token, and one token is
    sampled from its logits, at absolute position start + len(token_ids).

    `num_drafts`: so many of `token_ids`, the last, are not known but guessed. Then a token is sampled after
    the last known one and after each draft; they hold for as long as each is the draft that follows.

        known known | draft draft draft        num_drafts 3, four tokens sampled
                  t1    t2    t3    t4         t1 holds; t2 if t1 is the first draft; and so on
    """

    request: Request
    start: int
    token_ids: list[int]
    block_table: list[int]
    """Covers the chunk's positions, and may be longer. Position p lives in block_table[p // 16] at p % 16."""
    samples: bool
    num_drafts: int = 0

    @property
    def num_sampled(self) -> int:
        return self.num_drafts + 1 if self.samples else 0


class StepPlan(Struct, gc=False):
    step: int
    chunks: list[ScheduledChunk]
    copies: list[tuple[int, int]] = []
    """(source, target) blocks to be copied before the step."""
    num_tokens: int = 0
    """Of all chunks; counted where it isn't given."""

    def __post_init__(self) -> None:
        if not self.num_tokens:
            self.num_tokens = num_tokens(self.chunks)


def num_tokens(chunks: list[ScheduledChunk]) -> int:
    return sum([len(chunk.token_ids) for chunk in chunks])


class SampledToken(Struct, gc=False):
    token_id: int
    logprob: float | None = None
    top: list[tuple[int, float]] = []
    failure: Code | None = None
    """Why there is no token: the request ends as failed. May be set for a chunk that samples nothing, too."""
    vector: bytes = b""
    """Of a request that embeds, in the place of its one token: little-endian fp32."""


class StepResult(Struct, gc=False):
    sampled: list[SampledToken | None]
    """Aligned with the plan's chunks; None where a chunk doesn't sample, or has drafts."""
    verified: dict[int, list[SampledToken]] = {}
    """By index of a chunk with drafts: the tokens that hold, at least one, a failure only at the end."""
    prompt_logprobs: dict[int, list[TokenLogprobs]] = {}
    """By index of a chunk that was asked for them: of positions start + 1 on, as far as the prompt goes."""

    @classmethod
    def failed(cls, plan: StepPlan, code: Code) -> "StepResult":
        """The whole step went wrong: every request in it ends as failed."""
        return cls([SampledToken(PENDING_TOKEN, failure=code) for _ in plan.chunks])


class RequestUpdate(Struct, gc=False):
    """What one applied step means to one request."""

    request: Request
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None = None
    finish: FinishReason | None = None
    code: Code | None = None
    stop_token_id: int | None = None
    prompt_logprobs: list[TokenLogprobs] | None = None
    vector: bytes = b""
