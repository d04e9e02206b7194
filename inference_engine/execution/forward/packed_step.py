"""What one forward pass hands down to the attention of every layer, and the hook by which layers reach it.

transformers passes it through the model as the keyword `packed_step`; a layer that we have not swapped for
one of our own arrives here through `AttentionInterface`, under the name `ATTENTION_NAME`.
"""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from inference_engine.execution.attention.backend import AttentionBackend, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata

ATTENTION_NAME = "octavo"


@dataclass(slots=True)
class PackedStep:
    """One forward pass over T packed rows."""

    backend: AttentionBackend
    kv_layers: list[KvLayer]
    metadata: AttentionMetadata
    layer_calls: list[int] = field(default_factory=list)
    """Layer indices in the order in which their attention was called; the self-check counts them."""

    def attend(
        self,
        layer_index: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        scale: float,
        sliding_window: int | None = None,
        softcap: float | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Store key and value [T, K, D], then attend with query [T, H, D]; returns [T, H, D]."""
        self.layer_calls.append(layer_index)
        layer = self.kv_layers[layer_index]
        self.backend.write(layer, key, value, self.metadata)
        return self.backend.attend(
            layer,
            query,
            self.metadata,
            scale=scale,
            sliding_window=sliding_window,
            softcap=softcap,
            sinks=sinks,
        )


def paged_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packed_step: PackedStep,
    scaling: float,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """What transformers calls: query [1, H, T, D], key and value [1, K, T, D] -> [1, T, H, D]."""
    assert attention_mask is None, "the packed step says who attends to what; a mask would be ignored"
    output = packed_step.attend(
        module.layer_idx,  # type: ignore[arg-type]
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        scale=scaling,
        sliding_window=sliding_window,
        softcap=softcap,
        sinks=s_aux,
    )
    return output.unsqueeze(0), None


AttentionInterface.register(ATTENTION_NAME, paged_attention)
