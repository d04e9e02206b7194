"""A request's logits do not depend on what else the engine does: equal to the bit, in fp32, bf16 and int8."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine_harness import Trace
from exactness import CIRCUMSTANCES, Circumstance, Subject, alone, batched, check
from inference_engine.execution.attention.backend import AttentionRule, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.models.model_loading import load_model
from inference_engine.execution.models.numerics import DTYPES
from inference_engine.execution.products.native_products import has_int8_products
from inference_engine.execution.products.quantization import INT8
from requirements_of_tests import INT8_PRODUCTS, require_of_cpu
from tiny_models import save_tiny_llama, save_tiny_mistral

SAVERS = {"llama": save_tiny_llama, "mistral": save_tiny_mistral}
BACKENDS = ("reference", "cpu")


def warmed(folder: Path, backend_name: str, dtype: str) -> Subject:
    if dtype == INT8:
        require_of_cpu(has_int8_products(), INT8_PRODUCTS)
    backend = choose_backend(backend_name)
    model = load_model(folder, DTYPES[dtype], backend, in_int8=dtype == INT8)
    subject = Subject(model, backend)
    runner = subject.runner()
    assert runner.warm().is_invariant
    assert runner.batch_invariant
    return subject


@pytest.fixture(
    scope="module",
    params=[(m, b, d) for m in SAVERS for b in BACKENDS for d in DTYPES if (b, d) != ("reference", INT8)],
    ids="-".join,
)
def tiny(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Subject, list[Trace]]]:
    """A tiny model, and its requests each run alone."""
    model, backend, dtype = request.param
    if backend == "cpu":
        request.getfixturevalue("compiler")
    subject = warmed(SAVERS[model](tmp_path_factory.mktemp(model)), backend, dtype)
    yield subject, alone(subject)


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES, ids=lambda each: each.__name__)
def test_tiny_model_is_the_same_under(circumstance: Circumstance, tiny: tuple[Subject, list[Trace]]) -> None:
    check(circumstance, *tiny)


@pytest.fixture(scope="module", params=DTYPES)
def real(request: pytest.FixtureRequest, smollm2_dir: Path, compiler: Path) -> tuple[Subject, list[Trace]]:
    subject = warmed(smollm2_dir, "cpu", request.param)
    return subject, alone(subject)


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES, ids=lambda each: each.__name__)
def test_real_model_is_the_same_under(circumstance: Circumstance, real: tuple[Subject, list[Trace]]) -> None:
    check(circumstance, *real)


class BatchChosenSplits(ReferenceBackend):
    """The mistake that all this is about: KV splits as long as the batch suggests."""

    def _attend(
        self, layer: KvLayer, query: Tensor, metadata: AttentionMetadata, rule: AttentionRule
    ) -> Tensor:
        self.split_tokens = 16 if metadata.num_sequences == 1 else 2
        return super()._attend(layer, query, metadata, rule)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])  # int8 rounds such differences away
def test_a_split_chosen_by_the_batch_is_seen(dtype: str, tmp_path: Path) -> None:
    subject = warmed(save_tiny_llama(tmp_path, num_hidden_layers=6), "reference", dtype)
    mutant = replace(subject, backend=BatchChosenSplits())
    with pytest.raises(AssertionError):
        check(batched, mutant, alone(mutant))
    check(batched, subject, alone(subject))


def test_an_early_prompt_token_changes_every_later_logit(tiny: tuple[Subject, list[Trace]]) -> None:
    """Else the tests above would see nothing. (Three windowed layers reach back farther than 40 tokens.)"""
    subject, expected = tiny
    prompt = subject.prompts()[1]
    harness = subject.harness()
    changed = harness.add([prompt[0] + 1, *prompt[1:]], max_tokens=1)
    harness.run()
    assert (changed.logits[0] - expected[1].logits[0]).abs().max() > 0.01
    assert torch.isfinite(changed.logits).all()
