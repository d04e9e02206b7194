"""Of several candidates the most likely per token are answered."""

from types import SimpleNamespace
from typing import Any

from gateway.completions.best_of import best_of
from gateway.runs.answer import Collected
from inference_engine.contract.events import TokenLogprobs


def candidate(index: int, *logprobs: float) -> Collected:
    choice: Any = SimpleNamespace(index=index)
    return Collected(choice, index, logprobs=[TokenLogprobs(logprob=value) for value in logprobs])


def answered(candidates: list[Collected], num_choices: int, num_candidates: int) -> list[tuple[int, int]]:
    order: Any = SimpleNamespace(num_choices=num_choices, num_candidates=num_candidates)
    return [(one.index, one.choice.index) for one in best_of(candidates, order)]


def test_the_mean_counts_and_not_the_sum() -> None:
    long, short, empty = candidate(0, -0.5, -0.5, -0.5), candidate(1, -1.0), candidate(2)
    assert answered([long, short, empty], 2, 3) == [(0, 0), (1, 1)]
    assert answered([short, long, empty], 1, 3) == [(0, 0)]
    assert answered([empty, candidate(1, -9.0)], 1, 2) == [(0, 1)]


def test_each_prompt_has_its_own_best_and_equals_keep_their_order() -> None:
    made = [candidate(0, -2.0), candidate(1, -1.0), candidate(2, -3.0), candidate(3, -3.0)]
    assert answered(made, 1, 2) == [(0, 1), (1, 2)]


def test_without_more_candidates_nothing_is_reordered() -> None:
    assert answered([candidate(0, -2.0), candidate(1, -1.0)], 2, 2) == [(0, 0), (1, 1)]
