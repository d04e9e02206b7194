import pytest
import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from inference_engine.execution.products import activations
from inference_engine.execution.products.activations import Activation, clamped_gate, soft_capped

pytestmark = pytest.mark.usefixtures("compiler")
NAMES = ["silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh"]
DTYPES = [torch.float32, torch.bfloat16]
WIDTH = 37
"""No multiple of any vector."""


def halves(count: int, dtype: torch.dtype, spread: float = 3.0) -> tuple[Tensor, Tensor]:
    """Gates and ups as a product leaves them: strided rows."""
    rows = torch.randn(count, 2 * WIDTH, generator=torch.Generator().manual_seed(2)) * spread
    gate, up = rows.to(dtype).chunk(2, dim=-1)
    return gate, up


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 2.0**-7, "atol": 2.0**-6} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 5e-6}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*NAMES, "relu"])
def test_they_are_transformers_own(name: str, dtype: torch.dtype) -> None:
    module = ACT2FN[name]
    gate, up = halves(9, dtype)
    torch.testing.assert_close(Activation(module)(gate), module(gate.clone()), **tolerance(dtype))
    torch.testing.assert_close(Activation(module)(gate, up), module(gate.clone()) * up, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_the_same_in_any_batch_and_an_element_at_any_place(name: str, dtype: torch.dtype) -> None:
    gate, up = halves(3000, dtype)
    activation = Activation(ACT2FN[name])
    whole = activation(gate, up)
    for count in (1, 2, 7, 500):
        assert torch.equal(activation(gate[-count:], up[-count:]), whole[-count:])
    for start in (1, 16, 30):
        assert torch.equal(activation(gate[:, start:], up[:, start:]), whole[:, start:])


def test_the_ends_of_the_range_stay_finite() -> None:
    far = torch.tensor([[-1e4, -100.0, -50.0, -1e-30, 0.0, 50.0, 1e4]])
    for name in NAMES:
        torch.testing.assert_close(Activation(ACT2FN[name])(far), ACT2FN[name](far), rtol=1e-5, atol=1e-30)
    assert Activation(nn.SiLU())(torch.full((1, 3), torch.nan)).isnan().all()


def test_clamped_gates_are_those_of_gpt_oss() -> None:
    gate, up = halves(5, torch.float32, spread=9.0)
    low, bounded = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    expected = low * torch.sigmoid(1.702 * low) * (bounded + 1)
    torch.testing.assert_close(clamped_gate(gate, up, 1.702, 7.0), expected, rtol=1e-5, atol=1e-6)


def test_capped_logits_are_the_formula_and_rows_of_their_own() -> None:
    logits = torch.randn(40, 2001) * 40
    expected = 30 * torch.tanh(logits / 30)
    whole = soft_capped(logits.clone(), 30.0)
    torch.testing.assert_close(whole, expected, rtol=1e-6, atol=1e-5)
    assert torch.equal(soft_capped(logits[-3:].clone(), 30.0), whole[-3:])


def test_without_kernels_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, up = halves(4, torch.float32)
    ours = (Activation(nn.SiLU())(gate, up), clamped_gate(gate, up, 1.7, 7.0), soft_capped(gate.clone(), 3.0))
    monkeypatch.setattr(activations, "has_kernels", lambda: False)
    theirs = (
        Activation(nn.SiLU())(gate, up),
        clamped_gate(gate, up, 1.7, 7.0),
        soft_capped(gate.clone(), 3.0),
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
