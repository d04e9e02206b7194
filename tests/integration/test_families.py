"""Every family that is served: like transformers in fp32, like itself to the bit in any batch.

All of them go through a saved checkpoint and our own loading, checks at load included.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from against_transformers import check_against, reference_of, runner_of
from engine_harness import Trace
from exactness import Subject, alone, batched, check, chunked, shuffled_pages
from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.cpu import CpuBackend
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.models.families import ACCEPTED, UnsupportedModel
from inference_engine.execution.models.model_loading import load_model
from matrix_threads import matrix_threads
from tiny_families import FAMILIES, ORIGINAL_CONTEXT, save_tiny

pytestmark = pytest.mark.usefixtures("compiler", "_one_thread")
MAX_STEP_TOKENS = 144
"""More than all prompts together, so that they can be one batch."""


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """The models are so small that threads would mostly wait for each other."""
    with matrix_threads(1):
        yield


def test_every_family_that_is_accepted_is_tested() -> None:
    assert {name.split(" with ")[0].split(" in ")[0] for name in FAMILIES} == {
        name.removesuffix(" (text)") for name in ACCEPTED.values()
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family: str, tmp_path: Path) -> None:
    folder = save_tiny(family, tmp_path)
    check_against(reference_of(folder), runner_of(folder, "cpu"), num_outputs=20)


@pytest.mark.parametrize("backend", ["reference", "cpu-fallback"])
@pytest.mark.parametrize("family", ["Gemma 2", "gpt-oss"])
def test_other_backends_cap_and_sink_alike(family: str, backend: str, tmp_path: Path) -> None:
    folder = save_tiny(family, tmp_path)
    check_against(reference_of(folder), runner_of(folder, backend), num_outputs=12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_bit_depends_on_batch_chunks_or_pages(family: str, dtype: torch.dtype, tmp_path: Path) -> None:
    backend = choose_backend("cpu")
    model = load_model(save_tiny(family, tmp_path), dtype, backend)
    subject = Subject(model, backend, MAX_STEP_TOKENS)
    assert subject.runner().warm().varying == []
    expected = alone(subject)
    for circumstance in (batched, chunked, shuffled_pages):
        check(circumstance, subject, expected)
    assert_sees_its_prompt(subject, expected)


def assert_sees_its_prompt(subject: Subject, expected: list[Trace]) -> None:
    """Else the comparisons would see nothing: an early token changes what comes out 40 tokens later."""
    prompt = subject.prompts()[1]
    harness = subject.harness()
    changed = harness.add([prompt[0] + 1, *prompt[1:]], max_tokens=1)
    harness.run()
    assert (changed.logits[0] - expected[1].logits[0]).abs().max() > 0.001


@pytest.mark.parametrize("context_length", [ORIGINAL_CONTEXT, 400])
def test_longrope_is_frozen_by_the_context_length(context_length: int, tmp_path: Path) -> None:
    """A short text in a long context gets the long context's frequencies, as a long text beside it would."""
    folder = save_tiny("Phi-3 with longrope", tmp_path)
    backend = choose_backend("reference")
    model = load_model(folder, torch.float32, backend, context_length)
    reference = reference_of(folder).model.rotary_emb
    cos, _ = reference(torch.zeros(1), torch.arange(context_length).unsqueeze(0))
    assert model.context_length == context_length
    torch.testing.assert_close(model.module.model.rotary_emb.cos[:context_length], cos[0])
    short_cos, _ = reference(torch.zeros(1), torch.ones(1, 1))
    is_long = not torch.allclose(model.module.model.rotary_emb.cos[1], short_cos[0, 0])
    assert is_long == (context_length > ORIGINAL_CONTEXT)


@pytest.mark.parametrize(
    ("family", "forgotten"),
    [
        ("Gemma 2", "softcap"),
        ("gpt-oss", "sinks"),
        ("Cohere 2", "sliding_window"),
        ("OLMo 3", "sliding_window"),
    ],
)
def test_a_backend_that_forgets_a_rule_is_refused_at_load(
    family: str, forgotten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = PackedStep.attend

    def forgetful(step: PackedStep, *args: Any, **rule: Any) -> torch.Tensor:
        return attend(step, *args, **{**rule, forgotten: None})

    backend: AttentionBackend = CpuBackend()
    folder = save_tiny(family, tmp_path)
    load_model(folder, torch.float32, backend)
    monkeypatch.setattr(PackedStep, "attend", forgetful)
    with pytest.raises(UnsupportedModel, match="small copy"):
        load_model(folder, torch.float32, backend)
