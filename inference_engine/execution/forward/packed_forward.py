"""The forward pass over packed rows: ids and a packed step in, hidden states or logits out."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.models.model_parts import decoder_of
from inference_engine.execution.products.activations import soft_capped
from inference_engine.execution.products.row_buckets import exactly, row_bucket


def hidden_states(module: Any, token_ids: Tensor, step: PackedStep) -> Tensor:
    """Last hidden states [T, hidden] of packed ids int64 [T], one for each row of the step's metadata."""
    decoder = module.native_decoder
    if decoder is not None and decoder.runs_on(step.backend):
        states: Tensor = decoder(token_ids, step)
        return states
    output = decoder_of(module)(
        input_ids=token_ids.unsqueeze(0),
        position_ids=step.metadata.positions.unsqueeze(0),
        use_cache=False,
        packed_step=step,
    )
    last: Tensor = output.last_hidden_state[0]
    return last


def padding_of(module: Any, backend: AttentionBackend) -> Callable[[int], int]:
    """How many rows a step of so many tokens runs with: as many, or their bucket for oneDNN's sake."""
    decoder = module.native_decoder
    return exactly if decoder is not None and decoder.runs_on(backend) else row_bucket


def logits_of_rows(module: Any, states: Tensor, rows: Tensor) -> Tensor:
    """fp32 logits [len(rows), vocab] of some rows of states [T, hidden]; only these go through the head.

    The rows are padded to their bucket by repeating row 0, for the head's sake (see row_buckets).
    """
    num_rows = rows.shape[0]
    padding = rows.new_zeros(row_bucket(num_rows) - num_rows)
    logits: Tensor = module.lm_head.product_in_float(states[torch.cat([rows, padding])])
    return finished_logits(module.config, logits[:num_rows])


def finished_logits(config: Any, logits: Tensor) -> Tensor:
    """fp32 logits [rows, vocab] as they come from the head -> scaled and capped, as some families do."""
    if getattr(config, "logit_scale", None) is not None:
        logits = logits * config.logit_scale
    if getattr(config, "logits_scaling", None) is not None:
        logits = logits / config.logits_scaling
    cap = getattr(config, "final_logit_softcapping", None)
    return logits if cap is None else soft_capped(logits, cap)
