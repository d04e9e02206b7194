"""A causal language model without its head: what would go into the head comes out."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM


class NoHead(nn.Module):
    """Stands where the head would be, so that everything else is as in any model."""

    def forward(self, states: Tensor) -> Tensor:
        return states

    def product_in_float(self, states: Tensor) -> Tensor:
        return states.float()


def without_head(decoder: Any) -> Any:
    """The module around a loaded stack of layers. Nothing of a head is ever allocated."""
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(copy.deepcopy(decoder.config), attn_implementation="eager")
    setattr(module, module.base_model_prefix, decoder)
    module.config = decoder.config
    module.lm_head = NoHead()
    return module
