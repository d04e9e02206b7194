"""A runner without a model: tokens are a function of seed, choice, position and prompt; time is a setting."""

import math
import time
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from inference_engine.contract.events import TokenLogprobs
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import (
    PENDING_TOKEN,
    SampledToken,
    ScheduledChunk,
    StepPlan,
    StepResult,
)

_PROMPT_WINDOW = 64
_MIX = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSpeed:
    step_ms: float = 0.0
    token_us: float = 0.0
    """Added for each token in the step."""


class FakeRunner:
    """Equal requests get equal tokens however they are batched, preempted or moved, as from a real runner."""

    def __init__(
        self,
        *,
        num_blocks: int,
        vocab_size: int,
        avoid_ids: Sequence[int] = (),
        end_id: int | None = None,
        end_after: int | None = None,
        speed: FakeSpeed | None = None,
        vector_size: int = 0,
    ) -> None:
        """`avoid_ids` are never sampled, except `end_id` once a request has `end_after` outputs. Requests
        that embed get `vector_size` numbers."""
        self.num_blocks = num_blocks
        self._speed = speed or FakeSpeed()
        self._end_id = end_id
        self._end_after = end_after
        self._vector_size = vector_size
        avoided = frozenset(avoid_ids)
        self._ids = array("q", (i for i in range(vocab_size) if i not in avoided))

    def run(self, plan: StepPlan) -> StepResult:
        seconds = self._speed.step_ms / 1e3 + self._speed.token_us / 1e6 * plan.num_tokens
        if seconds > 0:
            time.sleep(seconds)
        result = StepResult([None] * len(plan.chunks), prompt_logprobs=_prompt_logprobs(plan))
        for index, chunk in enumerate(plan.chunks):
            if chunk.num_drafts:
                result.verified[index] = self._verified(chunk)
            elif chunk.request.embeds and chunk.samples:
                result.sampled[index] = SampledToken(PENDING_TOKEN, vector=self._vector(chunk.request))
            elif chunk.samples:
                result.sampled[index] = self._sample(chunk.request, chunk.start + len(chunk.token_ids))
        return result

    def _verified(self, chunk: ScheduledChunk) -> list[SampledToken]:
        """One token, and another behind each draft that is what was sampled."""
        request, position = chunk.request, chunk.start + len(chunk.token_ids) - chunk.num_drafts
        held = [self._sample(request, position)]
        for draft_id in chunk.token_ids[-chunk.num_drafts :]:
            if held[-1].token_id != draft_id:
                break
            held.append(self._sample(request, position + len(held)))
        return held

    def _sample(self, request: Request, position: int) -> SampledToken:
        if self._ends(position - len(request.prompt_ids)):
            return self._with_logprobs(request, self._end_id or 0, position)
        return self._with_logprobs(request, self._ids[_draw(request, position) % len(self._ids)], position)

    def _vector(self, request: Request) -> bytes:
        """Of length 1, at an angle that is drawn for the prompt."""
        angle = _draw(request, 0) / _MASK * math.tau
        numbers = [math.cos(angle + index) for index in range(self._vector_size)]
        length = math.hypot(*numbers)
        return array("f", [number / length for number in numbers]).tobytes()

    def _ends(self, num_outputs: int) -> bool:
        return self._end_id is not None and self._end_after is not None and num_outputs >= self._end_after

    def _with_logprobs(self, request: Request, token_id: int, position: int) -> SampledToken:
        wanted = request.sampling.logprobs
        if wanted is None:
            return SampledToken(token_id)
        others = [self._ids[(position + rank) % len(self._ids)] for rank in range(wanted)]
        return SampledToken(token_id, -0.5, [(other, -0.5 * (rank + 1)) for rank, other in enumerate(others)])


def _prompt_logprobs(plan: StepPlan) -> dict[int, list[TokenLogprobs]]:
    """By position alone, as the real runner aligns them."""
    found: dict[int, list[TokenLogprobs]] = {}
    for index, chunk in enumerate(plan.chunks):
        request = chunk.request
        if request.sampling.prompt_logprobs is not None:
            last = min(chunk.start + len(chunk.token_ids), request.num_prompt - 1)
            positions = range(chunk.start + 1, last + 1)
            found[index] = [TokenLogprobs(logprob=-1 / (1 + position)) for position in positions]
    return found


def _draw(request: Request, position: int) -> int:
    """64 well-mixed bits. Of a long prompt only the end is looked at, so that a step costs no more for it."""
    prompt = zlib.crc32(array("q", request.prompt_ids[-_PROMPT_WINDOW:]).tobytes(), len(request.prompt_ids))
    mixed = (request.sampling.seed & _MASK) ^ prompt << 17 ^ request.choice << 50
    mixed = (mixed + (position + 1) * _MIX) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31
