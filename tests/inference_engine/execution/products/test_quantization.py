"""Linear layers in 8 bits: near the exact product, a function of the row alone, refused where impossible."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from inference_engine.execution.model_runner import ModelRunner
from inference_engine.execution.products import quantization
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.native_products import has_int8_products, interleave
from matrix_threads import matrix_threads
from requirements_of_tests import INT8_PRODUCTS, require_of_cpu
from tiny_models import save_tiny_llama

SHAPES = [(960, 576), (211, 130), (16, 2), (48, 1536)]
"""(outputs, inputs): whole panels and groups, a part of either, less than one of each."""
LARGEST_ERROR = 0.012
"""Of a product, relative: the rounding of two random factors to 127 levels gives 0.0085."""


@pytest.fixture(autouse=True)
def _int8(compiler: Path) -> None:
    require_of_cpu(has_int8_products(), INT8_PRODUCTS)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def quantised(outputs: int, inputs: int, bias: Tensor | None = None) -> PackedLinear:
    linear = PackedLinear(random(outputs, inputs), bias)
    linear.quantise()
    return linear


@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_the_product_is_the_exact_one_but_for_the_rounding_of_its_factors(outputs: int, inputs: int) -> None:
    rows, weight = random(37, inputs), random(outputs, inputs)
    exact = rows.float() @ weight.float().T
    product = quantised(outputs, inputs).product_in_float(rows)
    assert (product - exact).norm() < LARGEST_ERROR * exact.norm()
    assert not torch.equal(product, PackedLinear(weight).product_in_float(rows)), "nothing was rounded"


def test_levels_that_8_bits_hold_are_multiplied_exactly() -> None:
    levels = torch.arange(-127, 128).repeat(3)[: 2 * 64 * 5].view(5, 128)
    levels[:, ::64] = 127  # so that one level is 1 in every group
    linear = PackedLinear(levels.bfloat16())
    linear.quantise()
    assert torch.equal(linear.product_in_float(levels.bfloat16()), (levels @ levels.T).float())


def test_a_bias_is_added_unrounded() -> None:
    bias, rows = random(96), random(5, 64)
    with_bias, without = quantised(96, 64, bias), quantised(96, 64)
    expected = without.product_in_float(rows) + bias.float()
    torch.testing.assert_close(with_bias.product_in_float(rows), expected)


@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_a_row_is_bitwise_the_same_at_every_count_place_and_number_of_threads(
    outputs: int, inputs: int
) -> None:
    linear, rows = quantised(outputs, inputs), random(61, inputs)
    whole = linear.product_in_float(rows)
    for threads in (1, 2, 3):
        with matrix_threads(threads):
            for count in (1, 2, 5, 6, 7, 12, 13, 60):
                assert torch.equal(linear.product_in_float(rows[-count:]), whole[-count:])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_in_one_row_stays_in_it_and_stays_visible(value: float) -> None:
    linear, rows = quantised(96, 576), random(7, 576)
    rows[3, 100] = value
    product = linear.product_in_float(rows)
    is_finite = product.isfinite().all(1)
    assert is_finite.tolist() == [True, True, True, False, True, True, True]


def test_gates_and_ups_are_those_of_separate_layers() -> None:
    gate, up, rows = random(32, 128), random(32, 128), random(9, 128) / 8
    both = PackedLinear(interleave(gate, up))
    both.quantise()
    activated = torch.ops.octavo.gated(rows, both.weight, 32)
    exact = torch.nn.functional.silu(rows.float() @ gate.float().T) * (rows.float() @ up.float().T)
    assert (activated.float() - exact).norm() < 3 * LARGEST_ERROR * exact.norm()


def test_a_model_says_that_it_is_int8_and_has_another_fingerprint(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path)
    in_int8, in_bf16 = (
        ModelRunner.load(folder, backend="cpu", dtype=dtype, num_blocks=8) for dtype in ("int8", "bfloat16")
    )
    assert in_int8.description_fields()["dtype"] == "int8"
    assert in_int8.model.module.native_decoder is not None
    assert in_int8.fingerprint() != in_bf16.fingerprint()
    assert in_int8.model.module.lm_head.weight.dtype is torch.bfloat16


def test_without_such_products_the_setting_is_refused_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "has_int8_products", lambda: False)
    with pytest.raises(ValueError, match="int8 needs a C\\+\\+ compiler and a CPU with AVX-512 VNNI"):
        ModelRunner.load(save_tiny_llama(tmp_path), dtype="int8", num_blocks=8)
