from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.native_products import has_native_products, interleave, pack_native
from requirements_of_tests import BF16_PRODUCTS, require_of_cpu

SHAPES = [(960, 576), (211, 64), (16, 2), (48, 1536)]
"""(outputs, inputs): whole panels, a last panel of one vector and a bit, less than one panel."""


@pytest.fixture(autouse=True)
def _native(compiler: Path) -> Iterator[None]:
    require_of_cpu(has_native_products(), BF16_PRODUCTS)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def linear(outputs: int, inputs: int, bias: bool = False) -> nn.Linear:
    plain = nn.Linear(inputs, outputs, bias=bias).bfloat16().requires_grad_(False)
    plain.weight.copy_(random(outputs, inputs))
    return plain


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_the_product_is_that_of_fp32_rounded_once(outputs: int, inputs: int, bias: bool) -> None:
    plain = linear(outputs, inputs, bias)
    packed = PackedLinear(plain.weight, plain.bias)
    assert packed.is_native
    rows = random(31, inputs)
    expected = plain.float()(rows.float())
    torch.testing.assert_close(packed.product_in_float(rows), expected, atol=1e-3, rtol=1e-4)
    assert torch.equal(packed(rows), packed.product_in_float(rows).bfloat16())


@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_a_row_is_bitwise_the_same_at_every_count_place_and_number_of_threads(
    outputs: int, inputs: int
) -> None:
    packed = PackedLinear(random(outputs, inputs))
    rows = random(61, inputs)
    whole = packed.product_in_float(rows)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for count in (1, 2, 3, 11, 12, 13, 24, 25, 60):
            assert torch.equal(packed.product_in_float(rows[-count:]), whole[-count:])


def test_a_nan_or_infinity_in_one_row_stays_in_it() -> None:
    packed = PackedLinear(random(96, 64))
    rows = random(5, 64)
    expected = packed.product_in_float(rows)
    rows[2, 7], rows[4, 0] = torch.nan, torch.inf
    product = packed.product_in_float(rows)
    assert product[2].isnan().all() and not product[4].isfinite().any()
    for row in (0, 1, 3):
        assert torch.equal(product[row], expected[row])


def test_gated_product_is_silu_of_the_gates_times_the_ups() -> None:
    gate, up, rows = random(48, 64), random(48, 64) / 8, random(37, 64)
    packed = pack_native(interleave(gate, up))
    gated = torch.ops.octavo.gated(rows, packed, 48)
    expected = silu(rows.float() @ gate.float().T) * (rows.float() @ up.float().T)
    torch.testing.assert_close(gated.float(), expected, atol=1e-3, rtol=1e-2)
    for count in (1, 5, 13):
        assert torch.equal(torch.ops.octavo.gated(rows[-count:].contiguous(), packed, 48), gated[-count:])


def test_extreme_gates_give_their_limits() -> None:
    """SiLU of a large gate is the gate, of a very negative one 0; no infinity over infinity between."""
    gate, up = torch.zeros(16, 2).bfloat16(), torch.ones(16, 2).bfloat16()
    gate[:, 0] = 1
    rows = torch.tensor([[3e38, 0.0], [-3e38, 0.0], [0.0, 0.0]]).bfloat16()
    gated = torch.ops.octavo.gated(rows, pack_native(interleave(gate, up / 1e30)), 16)
    assert gated.isfinite().logical_or(gated.isinf()).all()
    assert (gated[1] == 0).all() and (gated[2] == 0).all() and (gated[0] > 1e37).all()


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(3, 62, dtype=torch.bfloat16),
        torch.zeros(3, 64),
        torch.zeros(3, 128, dtype=torch.bfloat16)[:, ::2],
        torch.zeros(64, dtype=torch.bfloat16),
    ],
    ids=["width", "dtype", "stride", "rank"],
)
def test_rows_of_another_kind_are_an_error(x: Tensor) -> None:
    packed = pack_native(random(96, 64))
    with pytest.raises(RuntimeError):
        torch.ops.octavo.linear(x, packed, None, 96, False)


def test_other_dtypes_and_odd_widths_are_left_to_onednn() -> None:
    assert pack_native(torch.zeros(32, 32)) is None
    assert pack_native(random(32, 33)) is None
