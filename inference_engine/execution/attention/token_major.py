"""The plain KV layout, for the backends that use nothing but torch.

keys, values    [num_blocks, 16, K, D]    slot = block * 16 + offset is a row of the first two dimensions
"""

from torch import Tensor, int64, tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionBackend, KvLayer, LayerSpec
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.memory.kv_memory import allocate_prefaulted


class TokenMajorBackend(AttentionBackend):
    """All of a backend but attention itself."""

    def allocate(self, spec: LayerSpec, num_blocks: int) -> KvLayer:
        self.check_layer(spec)
        shape = (num_blocks, BLOCK_SIZE, spec.num_kv_heads, spec.head_dim)
        keys, values = (allocate_prefaulted(shape, spec.dtype) for _ in range(2))
        return KvLayer(spec, num_blocks, keys, values)

    def write(self, layer: KvLayer, key: Tensor, value: Tensor, metadata: AttentionMetadata) -> None:
        is_real = metadata.slot_mapping >= 0
        slots = metadata.slot_mapping[is_real]
        layer.keys.flatten(0, 1)[slots] = key[is_real]
        layer.values.flatten(0, 1)[slots] = value[is_real]

    def gather(self, layer: KvLayer, block_ids: list[int]) -> tuple[Tensor, Tensor]:
        index = tensor(block_ids, dtype=int64)
        return layer.keys[index].flatten(0, 1), layer.values[index].flatten(0, 1)

    def copy_block(self, layer: KvLayer, source: int, destination: int) -> None:
        layer.keys[destination] = layer.keys[source]
        layer.values[destination] = layer.values[source]
