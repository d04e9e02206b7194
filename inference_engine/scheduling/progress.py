"""How far one request has come: its tokens and its blocks."""

from enum import Enum

from inference_engine.contract.events import TokenLogprobs
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams


class RequestState(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class Progress:
    """Counts along the sequence, with 0 <= computed <= scheduled <= expected, known <= expected:

        0 ........ num_computed ........ num_scheduled ........ num_expected
          KV confirmed         in flight               to be done

    A preempted request falls back to the blocks it kept, so counts can also shrink; `num_reached` never does.

    These are what every step reads and writes for every decode, in a class of their own so that they lie side
    by side: with a thousand running it is the processor's cache that a step waits for.
    """

    __slots__ = (
        "block_table",
        "class_rank",
        "is_told_ids_alone",
        "last_step",
        "max_known",
        "newest_ids",
        "num_chunks",
        "num_computed",
        "num_expected",
        "num_known",
        "num_prompt",
        "num_reached",
        "num_scheduled",
        "output_ids",
        "prompt_ids",
        "prompt_logprobs",
        "state",
        "stop_ids",
        "wants_logprobs",
    )

    class_rank: int

    def __init__(self, generate: Generate, max_tokens: int, end_ids: frozenset[int]) -> None:
        self.state = RequestState.WAITING
        self.prompt_ids = generate.prompt_ids
        self.output_ids = list(generate.output_ids)
        """Replayed and confirmed output tokens."""
        self.newest_ids = (self.output_ids or self.prompt_ids)[-1:]
        """The last token that is known, in the list that told it and that the next chunk computes: nobody may
        change it."""
        self.stop_ids = _stop_ids(generate.sampling, end_ids)
        """Ids that end this request: its own, and the model's unless `ignore_eos`."""
        self.wants_logprobs = generate.sampling.logprobs is not None
        self.prompt_logprobs: list[TokenLogprobs] | None = None
        """Of the prompt's tokens from the second on, as they are computed, until they are handed out."""
        if generate.sampling.prompt_logprobs is not None:
            self.prompt_logprobs = []
        self.is_told_ids_alone = not self.wants_logprobs and self.prompt_logprobs is None
        self.block_table: list[int] = []
        """Only ever appended to, and cut by replacement: a plan in flight may still read the list it has."""
        self.num_prompt = len(self.prompt_ids)
        self.num_known = self.num_prompt + len(self.output_ids)
        self.max_known = self.num_prompt + max_tokens
        self.num_expected = self.num_known
        """With the output token that a step in flight will sample, if one does."""
        self.last_step = 0
        """That has a chunk of it."""
        self.num_scheduled = 0
        self.num_computed = 0
        self.num_reached = 0
        """The furthest position ever computed, blocks kept or not."""
        self.num_chunks = 0

    @property
    def known_ids(self) -> list[int]:
        return self.prompt_ids + self.output_ids

    @property
    def num_remaining(self) -> int:
        """Tokens that could be scheduled now."""
        return self.num_expected - self.num_scheduled

    @property
    def num_pending(self) -> int:
        """Output tokens that steps in flight will sample."""
        return self.num_expected - self.num_known

    @property
    def is_scoring(self) -> bool:
        """Needs every row of its prompt: computed tokens of others are of no use to it."""
        return self.prompt_logprobs is not None and len(self.prompt_logprobs) < self.num_prompt - 1

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
        self.newest_ids = [token_id]
        self.num_known += 1
        if self.num_expected < self.num_known:
            self.num_expected = self.num_known  # a draft that holds: nobody counted on it


def _stop_ids(sampling: SamplingParams, end_ids: frozenset[int]) -> frozenset[int]:
    """One set for all that name none of their own."""
    common = frozenset[int]() if sampling.ignore_eos else end_ids
    return common | frozenset(sampling.stop_token_ids) if sampling.stop_token_ids else common
