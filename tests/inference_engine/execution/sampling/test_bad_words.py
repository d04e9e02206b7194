"""Ids that would complete a bad word, against the processor of transformers."""

import random

import torch
from transformers import NoBadWordsLogitsProcessor

from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.sampling.bad_words import forbidden_ends
from inference_engine.scheduling.request import Request


def test_they_are_those_that_transformers_forbids() -> None:
    words = ((4,), (8, 9), (1, 2, 3), (2, 3), (7, 7, 7, 7, 7, 7, 7, 7))
    processor = NoBadWordsLogitsProcessor([list(word) for word in words])
    chance = random.Random(1)
    num_found = 0
    for _ in range(300):
        known = [chance.randrange(1, 10) for _ in range(chance.randrange(1, 9))]
        num_prompt = chance.randrange(1, len(known) + 1)
        generate = Generate(
            request_id="r",
            prompt_ids=known[:num_prompt],
            output_ids=known[num_prompt:],
            sampling=SamplingParams(seed=0, max_tokens=20, bad_words_ids=words),
            tenant_id="t",
        )
        request = Request(generate, arrival=1, max_tokens=20, end_ids=frozenset())
        start = chance.randrange(len(known))
        scores = processor(torch.tensor([known]), torch.zeros(1, 12))
        expected = set((scores[0] == -torch.inf).nonzero().flatten().tolist())
        assert forbidden_ends(request, start, known[start:]) == expected
        num_found += len(expected) > 1
    assert num_found > 20
