from typing import Any

import pytest
import torch
from transformers import GptOssConfig, MixtralConfig, Qwen3MoeConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

from inference_engine.execution.products.experts import MixtureOfExperts, pack_gpt_oss_mixture, pack_mixture

SHAPE = {"hidden_size": 48, "intermediate_size": 40, "moe_intermediate_size": 40, "num_experts_per_tok": 2}
EXPERTS = {"num_local_experts": 5, "num_experts": 5}


def blocks() -> list[Any]:
    made = [
        MixtralSparseMoeBlock(MixtralConfig(**SHAPE, **EXPERTS)),
        Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(**SHAPE, **EXPERTS, norm_topk_prob=False)),
        Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(**SHAPE, **EXPERTS, norm_topk_prob=True)),
        GptOssMLP(GptOssConfig(**SHAPE, **EXPERTS)),
    ]
    generator = torch.Generator().manual_seed(3)
    for block in made:
        for parameter in block.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    return made


def packed(block: Any) -> MixtureOfExperts:
    with torch.inference_mode():
        return pack_gpt_oss_mixture(block) if isinstance(block, GptOssMLP) else pack_mixture(block)


def first(output: Any) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output


@torch.inference_mode()
@pytest.mark.parametrize("index", range(4))
def test_a_mixture_is_transformers_own(index: int) -> None:
    block = blocks()[index]
    x = torch.randn(1, 23, 48, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(first(packed(block)(x)), first(block(x)), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("index", [1, 3])
def test_a_row_does_not_depend_on_who_else_is_routed(index: int, dtype: torch.dtype) -> None:
    mixture = packed(blocks()[index].to(dtype))
    x = torch.randn(70, 48, generator=torch.Generator().manual_seed(1)).to(dtype)
    whole = first(mixture(x))
    for count in (2, 3, 17, 64):
        assert torch.equal(first(mixture(x[-count:])), whole[-count:])
    order = torch.randperm(70, generator=torch.Generator().manual_seed(2))
    assert torch.equal(first(mixture(x[order])), whole[order])
