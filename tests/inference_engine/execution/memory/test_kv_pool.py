import torch

from inference_engine.execution.attention.backend import LayerSpec
from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.memory.kv_pool import KvPool


def test_a_copied_block_is_copied_in_every_layer() -> None:
    backend = ReferenceBackend()
    pool = KvPool(backend, [LayerSpec(1, 4, torch.float32)] * 2, num_blocks=4)
    for number, layer in enumerate(pool.layers):
        rows = torch.full((16, 1, 4), number + 1.0)
        backend.write(layer, rows, -rows, build_metadata([0], [16], [[1]]))
    pool.copy_blocks([(1, 3), (3, 0)])
    for number, layer in enumerate(pool.layers):
        for block in (0, 3):
            keys, values = backend.gather(layer, [block])
            assert torch.equal(keys, torch.full((16, 1, 4), number + 1.0))
            assert torch.equal(values, -keys)
        assert not backend.gather(layer, [2])[0].any()
