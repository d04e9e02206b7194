import pytest
import torch
from torch import nn

from inference_engine.execution.products.linear import PackedLinear

DTYPES = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}


def linear(in_features: int, out_features: int, *, bias: bool, dtype: torch.dtype) -> nn.Linear:
    torch.manual_seed(in_features)
    return nn.Linear(in_features, out_features, bias=bias).to(dtype).requires_grad_(False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_packed_product_is_the_plain_one(bias: bool, dtype: torch.dtype) -> None:
    plain = linear(48, 80, bias=bias, dtype=dtype)
    packed = PackedLinear(plain.weight, plain.bias)
    x = torch.randn(1, 7, 48).to(dtype)
    assert packed.is_packed
    assert packed(x).shape == (1, 7, 80)
    torch.testing.assert_close(packed(x), plain(x), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_stacked_layers_lie_side_by_side(bias: bool, dtype: torch.dtype) -> None:
    parts = [linear(32, width, bias=bias, dtype=dtype) for width in (48, 16, 16)]
    x = torch.randn(5, 32).to(dtype)
    outputs = PackedLinear.stack(*parts)(x).split([48, 16, 16], dim=-1)
    for part, output in zip(parts, outputs, strict=True):
        torch.testing.assert_close(output, part(x), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_row_is_the_same_as_among_others(dtype: torch.dtype) -> None:
    """As products of one row take another code path, it is padded to two."""
    packed = PackedLinear(linear(576, 960, bias=False, dtype=dtype).weight)
    rows = torch.randn(16, 576).to(dtype)
    together = packed(rows)
    for index in range(16):
        assert torch.equal(packed(rows[index : index + 1]), together[index : index + 1])


def test_fewer_rows_than_min_rows_are_padded_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = PackedLinear(linear(32, 16, bias=False, dtype=torch.float32).weight)
    packed.min_rows = 9
    seen: list[int] = []
    product = packed.product
    monkeypatch.setattr(packed, "product", lambda x: (seen.append(x.shape[0]), product(x))[1])
    x = torch.randn(1, 4, 32)
    assert torch.equal(packed(x), packed(torch.cat([x, torch.zeros(1, 5, 32)], dim=1))[:, :4])
    assert seen[0] == 9


def test_where_nothing_can_be_packed_the_plain_product_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    plain = linear(32, 16, bias=True, dtype=torch.float32)
    packed = PackedLinear(plain.weight, plain.bias)
    assert not packed.is_packed
    x = torch.randn(3, 32)
    torch.testing.assert_close(packed(x), plain(x))
