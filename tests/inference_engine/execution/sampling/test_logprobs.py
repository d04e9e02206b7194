import math

import pytest
import torch

from inference_engine.execution.sampling.logprobs import row_logprobs
from sampling_rows import make_row, random_logits, sample


def test_logprobs_are_of_the_raw_distribution() -> None:
    logits = random_logits(3, 2000)
    rows = [
        make_row(temperature=0.3, top_k=5, logprobs=4),
        make_row(temperature=0.0, logprobs=0, forbid_ids=frozenset({int(logits[1].argmax())})),
        make_row(),
    ]
    sampled = sample(logits, rows)
    wanted = logits.double().log_softmax(1)
    for index in (0, 1):
        token = sampled[index]
        assert token.logprob == pytest.approx(float(wanted[index, token.token_id]), abs=2e-6)
    values, ids = wanted[0].topk(4)
    assert [id_ for id_, _ in sampled[0].top] == ids.tolist()
    assert [logprob for _, logprob in sampled[0].top] == pytest.approx(values.tolist(), abs=2e-6)
    assert sampled[1].top == []
    assert (sampled[2].logprob, sampled[2].top) == (None, [])


def test_every_number_is_finite_at_a_low_temperature_and_far_apart_logits() -> None:
    logits = torch.full((3, 300), -3e38)
    logits[:, 7] = 3e38
    logits[2] = random_logits(1, 300)[0]
    row = make_row(temperature=0.01, top_p=0.3, logprobs=20)
    for token in sample(logits[2:], [row]) + sample(logits[:2], [make_row(temperature=0.0, logprobs=20)] * 2):
        assert token.failure is None and token.logprob is not None
        assert all(
            math.isfinite(logprob) and logprob <= 1e-6
            for logprob in [token.logprob, *dict(token.top).values()]
        )


def test_equal_ones_are_ordered_by_id_and_short_vocabularies_give_what_they_have() -> None:
    logits = torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0]])
    [(_, top)] = row_logprobs(logits, torch.tensor([0]), [20])
    assert [id_ for id_, _ in top] == [1, 2, 4, 0, 3]


def test_the_number_asked_for_does_not_change_the_others() -> None:
    logits = random_logits(1, 5000)
    [(chosen, twenty)] = row_logprobs(logits, torch.tensor([5]), [20])
    for count in range(20):
        assert row_logprobs(logits, torch.tensor([5]), [count]) == [(chosen, twenty[:count])]
