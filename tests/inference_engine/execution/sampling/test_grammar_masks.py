"""Rows with a mask sample what it allows; nothing else of the batch changes."""

import pytest
import torch
from torch import Tensor

from inference_engine.contract.codes import Code
from inference_engine.execution.sampling.grammar_masks import GrammarMasks
from inference_engine.execution.sampling.row import SamplingRow
from inference_engine.execution.sampling.sampler import Sampler
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken
from sampling_rows import kept_probabilities, make_row, mixed_rows, possible_tokens, random_logits, sample

VOCAB_SIZE = 8192


def masks_of(allowed: dict[int, list[int]], **fields: dict[int, Code]) -> GrammarMasks:
    """Row -> the ids it may have."""
    rows = torch.zeros(len(allowed), VOCAB_SIZE, dtype=torch.bool)
    for index, ids in enumerate(allowed.values()):
        rows[index, ids] = True
    return GrammarMasks(list(allowed), rows, **fields)


def forbidding(row: SamplingRow, allowed: list[int]) -> SamplingRow:
    """The same by forbidden ids, which the definition knows."""
    others = frozenset(range(VOCAB_SIZE)) - frozenset(allowed)
    return SamplingRow(row.params, row.choice, row.position, others | row.forbid_ids)


def masked_sample(logits: Tensor, rows: list[SamplingRow], masks: GrammarMasks) -> list[SampledToken]:
    before = logits.clone()
    sampled = Sampler().sample(logits, rows, masks)
    assert torch.equal(logits, before)
    return sampled


@pytest.mark.parametrize("count", [1, 3, 200, 3000])
def test_a_masked_row_s_token_is_the_one_its_own_uniform_selects(count: int) -> None:
    """Fewer allowed ids than candidates of the filters, and more; every filter."""
    rows = mixed_rows(22)
    logits = random_logits(len(rows), VOCAB_SIZE)
    allowed = {
        index: sorted(
            torch.randperm(VOCAB_SIZE, generator=torch.Generator().manual_seed(index))[:count].tolist()
        )
        for index in range(len(rows))
    }
    for index, token in enumerate(masked_sample(logits, rows, masks_of(allowed))):
        row = forbidding(rows[index], allowed[index])
        assert token.token_id in possible_tokens(kept_probabilities(logits[index], row), row), row


def test_neighbours_and_masked_rows_are_bitwise_as_alone() -> None:
    rows = mixed_rows(33)
    logits = random_logits(len(rows), VOCAB_SIZE)
    allowed = {index: list(range(index, VOCAB_SIZE, 7 + index)) for index in range(0, len(rows), 3)}
    together = masked_sample(logits, rows, masks_of(allowed))
    plain = sample(logits.clone(), rows)
    for index, row in enumerate(rows):
        if index in allowed:
            [alone] = masked_sample(logits[index : index + 1], [row], masks_of({0: allowed[index]}))
            assert together[index] == alone and alone.token_id in allowed[index]
        else:
            assert together[index] == plain[index]


def test_logprobs_are_those_before_the_mask() -> None:
    row = make_row(temperature=0.0, logprobs=5)
    logits = random_logits(1, VOCAB_SIZE)
    [free] = sample(logits.clone(), [row])
    [masked] = masked_sample(logits, [row], masks_of({0: [17]}))
    assert (masked.token_id, masked.top) == (17, free.top)
    assert masked.logprob == pytest.approx(float(logits[0].double().log_softmax(0)[17]))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_with_no_token_left_fails_alone(temperature: float) -> None:
    """The only allowed token is a forbidden one: such a row must not fall back to all of the vocabulary."""
    rows = [make_row(temperature=temperature, top_p=0.9, forbid_ids=frozenset([5])), make_row(top_p=0.9)]
    logits = random_logits(2, VOCAB_SIZE)
    failed, spared = masked_sample(logits, rows, masks_of({0: [5]}))
    assert (failed.token_id, failed.failure) == (PENDING_TOKEN, Code.UNSUPPORTED_FEATURE)
    assert spared == sample(logits.clone(), rows)[1]


def test_a_row_whose_constraint_failed_has_no_token_and_no_logprobs() -> None:
    rows = [make_row(logprobs=2), make_row(logprobs=2)]
    logits = random_logits(2, VOCAB_SIZE)
    masks = masks_of({1: [3]}, failures={0: Code.QUEUE_TIMEOUT})
    failed, spared = masked_sample(logits, rows, masks)
    assert failed == SampledToken(PENDING_TOKEN, failure=Code.QUEUE_TIMEOUT)
    assert spared.token_id == 3


def test_logits_that_are_not_finite_fail_behind_a_mask_too() -> None:
    logits = random_logits(1, VOCAB_SIZE)
    logits[0, 100] = torch.inf
    [failed] = Sampler().sample(logits, [make_row(temperature=0.0)], masks_of({0: [3]}))
    assert failed.failure is Code.NON_FINITE_LOGITS
