"""The KV pool of one engine: the storage of every layer, all of the same number of blocks."""

from inference_engine.execution.attention.backend import AttentionBackend, KvLayer, LayerSpec


class KvPool:
    def __init__(self, backend: AttentionBackend, specs: list[LayerSpec], num_blocks: int) -> None:
        self.backend = backend
        self.num_blocks = num_blocks
        self.layers: list[KvLayer] = [backend.allocate(spec, num_blocks) for spec in specs]

    def copy_blocks(self, copies: list[tuple[int, int]]) -> None:
        """Copy whole blocks, in all layers, as (source, target) pairs in order."""
        for source, target in copies:
            for layer in self.layers:
                self.backend.copy_block(layer, source, target)
