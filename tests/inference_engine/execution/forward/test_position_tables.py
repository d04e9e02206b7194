import pytest
import torch
from transformers import Gemma3TextConfig, Olmo2Config, Phi3Config
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.olmo2.modeling_olmo2 import Olmo2RotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from inference_engine.execution.forward.position_tables import PositionTable, freeze_positions
from tiny_families import LONGROPE, ORIGINAL_CONTEXT

SHAPE = {"hidden_size": 64, "num_attention_heads": 4, "head_dim": 16, "max_position_embeddings": 64}
POSITIONS = torch.tensor([[0, 1, 39, 7, 7]])


def test_a_table_gives_the_bits_of_the_module_it_stands_for() -> None:
    """OLMo 2 keeps cos and sin in fp32, whatever the activations are."""
    rotary = Olmo2RotaryEmbedding(Olmo2Config(**SHAPE))
    like = torch.zeros(1, dtype=torch.bfloat16)
    for ours, theirs in zip(
        PositionTable(rotary, 40, like.dtype)(like, POSITIONS), rotary(like, POSITIONS), strict=True
    ):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs)


def test_layers_of_different_kinds_have_tables_of_their_own() -> None:
    rotary = Gemma3RotaryEmbedding(Gemma3TextConfig(**SHAPE, num_hidden_layers=6))
    table = PositionTable(rotary, 40, torch.float32)
    like = torch.zeros(1)
    found = {}
    for layer_type in ("full_attention", "sliding_attention"):
        found[layer_type], _ = table(like, POSITIONS, layer_type)
        torch.testing.assert_close(found[layer_type], rotary(like, POSITIONS, layer_type)[0])
    assert not torch.equal(*found.values())


@pytest.mark.parametrize("num_positions", [ORIGINAL_CONTEXT, ORIGINAL_CONTEXT + 1])
def test_frozen_positions_do_not_look_at_the_batch(num_positions: int) -> None:
    shape = {**SHAPE, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    module = torch.nn.Module()
    module.rotary_emb = Phi3RotaryEmbedding(Phi3Config(**shape, rope_parameters=LONGROPE))
    like, short, long = torch.zeros(1), torch.arange(4)[None], torch.arange(40)[None]
    free = [module.rotary_emb(like, positions)[0][0, :4] for positions in (short, long)]
    assert not torch.equal(*free)
    freeze_positions(module, num_positions)
    frozen = [module.rotary_emb(like, positions)[0][0, :4] for positions in (short, long)]
    assert torch.equal(*frozen)
    assert torch.equal(frozen[0], free[num_positions > ORIGINAL_CONTEXT])
