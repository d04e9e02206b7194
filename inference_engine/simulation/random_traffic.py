"""Random requests, small and alike enough that they share prefixes, fork, and get into each other's way."""

import random

from msgspec import structs

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams

VOCAB_SIZE = 23
END_IDS = frozenset({3})
TENANTS = ("a", "b", "c")


class Traffic:
    """Prompts begin with a few pages in any order, so that many share a prefix with others, and many have a
    page in common that stands after another prefix."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._num_requests = 0
        self._pages = [self._ids(BLOCK_SIZE) for _ in range(3)]

    def generate(self) -> Generate:
        draw = self._draw
        self._num_requests += 1
        prefix = [token_id for page in draw.choices(self._pages, k=draw.randrange(5)) for token_id in page]
        max_tokens = draw.randint(1, 90)
        return Generate(
            request_id=f"r{self._num_requests}",
            prompt_ids=prefix + self._ids(draw.randint(0 if prefix else 1, 20)),
            output_ids=self._ids(draw.randrange(max_tokens)) if draw.random() < 0.1 else [],
            sampling=SamplingParams(
                seed=draw.randrange(5),
                max_tokens=max_tokens,
                min_tokens=draw.choice((0, 0, 4)),
                stop_token_ids=draw.choice(((), (), (), (5,))),
                ignore_eos=draw.random() < 0.8,
                num_draft_tokens=draw.choice((0, 0, 1, 3, 8)),
            ),
            tenant_id=draw.choice(TENANTS),
            key_id=draw.choice(("k", "l")),
            service_class=draw.choice(list(ServiceClass)),
            weight=draw.choice((1.0, 2.0)),
        )

    def group(self) -> list[Generate]:
        """n > 1: one prompt, other seeds, some with outputs already; rarely one whose prompt differs."""
        draw, first = self._draw, self.generate()
        group_id = f"g{first.request_id}"
        members = [structs.replace(first, group_id=group_id)]
        for choice in range(1, draw.randint(2, 4)):
            self._num_requests += 1
            other = structs.replace(
                first,
                request_id=f"r{self._num_requests}",
                group_id=group_id,
                choice=choice,
                sampling=structs.replace(first.sampling, seed=draw.randrange(5)),
            )
            if draw.random() < 0.05:
                other = structs.replace(other, prompt_ids=self._ids(10))
            members.append(other)
        return members

    def _ids(self, count: int) -> list[int]:
        return [self._draw.randrange(VOCAB_SIZE) for _ in range(count)]
