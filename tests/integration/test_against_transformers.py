"""Our logits and tokens against the eager attention of transformers, in fp32, one text at a time."""

from pathlib import Path
from typing import Any

import pytest

from against_transformers import check_against, reference_of, runner_of
from tiny_models import save_tiny_llama, save_tiny_mistral

ROPE = {
    "default": {},
    "linear": {"factor": 2.0},
    "llama3": {
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 128},
}


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("rope_type", ROPE)
@pytest.mark.parametrize("save", [save_tiny_llama, save_tiny_mistral], ids=["llama", "mistral"])
def test_tiny_model_gives_the_logits_of_transformers(
    save: Any, rope_type: str, backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "cpu":
        request.getfixturevalue("compiler")
    rope = {"rope_type": rope_type, "rope_theta": 10_000.0, **ROPE[rope_type]}
    folder = save(tmp_path, rope_parameters=rope)
    check_against(reference_of(folder), runner_of(folder, backend), num_outputs=20)


def test_biases_and_an_untied_head_give_the_logits_of_transformers(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path, attention_bias=True, mlp_bias=True, tie_word_embeddings=False)
    check_against(reference_of(folder), runner_of(folder, "reference"), num_outputs=12)


def test_a_tied_head_gives_the_logits_of_transformers(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path, tie_word_embeddings=True)
    check_against(reference_of(folder), runner_of(folder, "reference"), num_outputs=12)


def test_smollm2_gives_the_logits_of_transformers(smollm2_dir: Path, compiler: Path) -> None:
    check_against(reference_of(smollm2_dir), runner_of(smollm2_dir, "cpu"), num_outputs=32)
