from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.models.invariance_probe import probe_model, rowwise_parts
from inference_engine.execution.models.model_loading import LoadedModel, load_model
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.native_products import has_native_products
from inference_engine.execution.products.row_buckets import EXACT_UP_TO, all_buckets
from requirements_of_tests import BF16_PRODUCTS, require_of_cpu
from tiny_models import save_tiny_llama


@pytest.fixture
def model(tmp_path: Path) -> LoadedModel:
    return load_model(save_tiny_llama(tmp_path), torch.float32, ReferenceBackend())


def silent(done: int, total: int) -> None:
    """Progress that nobody watches."""


def test_a_packed_model_passes_and_is_watched(model: LoadedModel) -> None:
    seen: list[tuple[int, int]] = []
    report = probe_model(model.module, 100, 8, lambda done, total: seen.append((done, total)))
    assert report.is_invariant
    assert report.min_rows == {}
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] == len(seen) - 1


def test_every_row_wise_part_is_probed_once_a_shape(model: LoadedModel) -> None:
    parts = rowwise_parts(model.module, 100, 8)
    names = [part.name for part in parts]
    assert len(names) == len(set(names))
    kinds = {name.split()[0] for name in names}
    assert kinds == {"PackedLinear", "FusedMlp", "LlamaRMSNorm"}
    linears = sum(len(part.modules) for part in parts if part.name.startswith("PackedLinear"))
    assert linears == 3 * 4 + 1
    assert [part.max_rows for part in parts if "x211" in part.name] == [8]


def spoil(monkeypatch: pytest.MonkeyPatch, out_features: int, is_spoiled: Any) -> None:
    """Products of one shape come out otherwise at the row counts that is_spoiled picks."""
    product = PackedLinear.product

    def spoiled(self: PackedLinear, x: Tensor) -> Tensor:
        output = product(self, x)
        count = x.numel() // self.in_features
        return output * (1 + 1e-6) if self.out_features == out_features and is_spoiled(count) else output

    monkeypatch.setattr(PackedLinear, "product", spoiled)


def test_few_rows_that_differ_are_padded_away(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 211, lambda count: count < 7)
    report = probe_model(model.module, 100, 20, silent)
    assert report.is_invariant
    assert list(report.min_rows.values()) == [7]
    assert model.module.lm_head.min_rows == 7
    rows = torch.randn(9, 64)
    assert torch.equal(model.module.lm_head(rows[:3]), model.module.lm_head(rows)[:3])


def test_the_padding_is_for_all_layers_of_the_shape(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, 192, lambda count: count == 2)
    assert probe_model(model.module, 100, 20, silent).is_invariant
    assert {layer.mlp.gate_up_proj.min_rows for layer in model.module.model.layers} == {3}
    assert {layer.mlp.down_proj.min_rows for layer in model.module.model.layers} == {2}


def test_rows_that_padding_can_not_help_are_reported(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, 192, lambda count: count == 96)
    report = probe_model(model.module, 200, 8, silent)
    assert not report.is_invariant
    assert [name.split()[0] for name in report.varying] == ["PackedLinear", "FusedMlp"]


def test_a_norm_that_looks_at_other_rows_is_reported(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm = type(model.module.model.norm)
    plain = norm.forward
    monkeypatch.setattr(norm, "forward", lambda self, x: plain(self, x) + x.mean() * 1e-6)
    assert any("RMSNorm" in name for name in probe_model(model.module, 20, 8, silent).varying)


def test_of_our_own_products_the_large_counts_between_are_left_out(tmp_path: Path, compiler: Path) -> None:
    require_of_cpu(has_native_products(), BF16_PRODUCTS)
    native = load_model(save_tiny_llama(tmp_path), torch.bfloat16, ReferenceBackend())
    for part in rowwise_parts(native.module, 200, 8):
        expected = all_buckets(200)
        if "Linear" in part.name or "Mlp" in part.name:
            expected = all_buckets(8) if part.max_rows == 8 else [*all_buckets(EXACT_UP_TO), 208]
        assert part.buckets() == expected
