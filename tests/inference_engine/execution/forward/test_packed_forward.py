import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from inference_engine.execution.forward.packed_forward import logits_of_rows


class Head(nn.Module):
    """Remembers what went through it."""

    def product_in_float(self, states: Tensor) -> Tensor:
        self.seen = states
        return states.float() * 2


class Model(nn.Module):
    def __init__(self, **config: float) -> None:
        super().__init__()
        self.lm_head = Head()
        self.config = SimpleNamespace(**config)


def test_only_the_rows_asked_for_go_through_the_head() -> None:
    model = Model()
    states = torch.arange(100.0).view(50, 2).bfloat16()
    logits = logits_of_rows(model, states, torch.tensor([3, 49, 7]))
    assert logits.dtype is torch.float32
    assert torch.equal(logits, states[[3, 49, 7]].float() * 2)
    assert model.lm_head.seen.shape == (3, 2)


def test_a_single_row_is_padded_to_its_bucket() -> None:
    model = Model()
    logits = logits_of_rows(model, torch.ones(5, 2), torch.tensor([4]))
    assert model.lm_head.seen.shape == (2, 2)
    assert logits.shape == (1, 2)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"logit_scale": 0.25}, 1.5),
        ({"logits_scaling": 3.0}, 2.0),
        ({"final_logit_softcapping": 4.0}, 4 * math.tanh(1.5)),
        ({"final_logit_softcapping": None}, 6.0),
    ],
)
def test_logits_are_scaled_and_capped_as_the_family_does(config: dict[str, float], expected: float) -> None:
    logits = logits_of_rows(Model(**config), torch.full((5, 2), 3.0), torch.tensor([4, 1]))
    torch.testing.assert_close(logits, torch.full((2, 2), expected))
