"""What holds of the tokens that a step sampled: of a chunk with drafts, up to the first that isn't its draft.

Each of them was sampled from the model's own logits with its position's own uniform, given the drafts before
it. So as far as these came out as sampled, it is the very token that a step without drafts would have
sampled: with fixed noise, speculative sampling is to accept while equal.
"""

from collections.abc import Callable, Sequence

from inference_engine.scheduling.step_plan import SampledToken, ScheduledChunk, StepResult

Outcomes = dict[int, list[SampledToken]]
"""By first sampled row of a chunk: its tokens that hold, at least one, a failure only at the end."""


def outcomes_of(
    chunks: Sequence[ScheduledChunk],
    sampled: Sequence[SampledToken],
    num_usable: Callable[[int, int], int],
) -> Outcomes:
    """`sampled`: one a sampled row. `num_usable(first row, rows)`: how many of a chunk's may be looked at."""
    outcomes: Outcomes = {}
    row = 0
    for chunk in chunks:
        count = chunk.num_sampled
        if count == 1:
            outcomes[row] = [sampled[row]]
        elif count:
            usable = sampled[row : row + num_usable(row, count)]
            outcomes[row] = accepted(usable, chunk.token_ids[-chunk.num_drafts :])
        row += count
    return outcomes


def accepted(sampled: Sequence[SampledToken], draft_ids: Sequence[int]) -> list[SampledToken]:
    """The first, and each further one whose draft was sampled by the one before."""
    held = [sampled[0]]
    for token, draft_id in zip(sampled[1:], draft_ids, strict=False):
        if held[-1].failure is not None or held[-1].token_id != draft_id:
            break
        held.append(token)
    return held


def step_result(chunks: Sequence[ScheduledChunk], outcomes: Outcomes) -> StepResult:
    result = StepResult([None] * len(chunks))
    tokens = iter(outcomes.values())
    for index, chunk in enumerate(chunks):
        if chunk.num_drafts:
            result.verified[index] = next(tokens)
        elif chunk.samples:
            result.sampled[index] = next(tokens)[0]
    return result
