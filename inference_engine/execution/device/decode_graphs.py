"""Decode steps as recorded graphs: the device runs a whole step at one word from the host.

A graph is recorded for each of a few batch sizes; a smaller batch is padded with rows that write and see
nothing. Its inputs are where they were when it was recorded, so a step copies its own there, then replays.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionBackend, KvLayer
from inference_engine.execution.attention.metadata import AttentionMetadata
from inference_engine.execution.device.input_staging import NO_SOURCE, DeviceInputs, InputStaging, host_parts
from inference_engine.execution.forward.packed_forward import hidden_states, logits_of_rows
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.products.experts import MixtureOfExperts
from inference_engine.execution.steps.step_inputs import PADDING_ID, StepInputs

Forward = Callable[[], Tensor]
Record = Callable[[Forward], Forward]
"""Makes of a function one that does the same work on the same memory, faster."""
SMALL_SIZES = (1, 2, 4)
STRIDE = 8
WARMING_RUNS = 2


def graph_sizes(max_running: int) -> list[int]:
    """1, 2, 4, then multiples of 8, the last of them max_running or more."""
    return [size for size in SMALL_SIZES if size < max_running] + list(
        range(STRIDE, max_running + STRIDE, STRIDE) if max_running > SMALL_SIZES[-1] else [max_running]
    )


def can_be_recorded(module: Any) -> bool:
    """Experts wait for the router's choice to reach the host, which no graph can hold."""
    return not any(isinstance(child, MixtureOfExperts) for child in module.modules())


class DecodeGraphs:
    def __init__(
        self,
        module: Any,
        backend: AttentionBackend,
        kv_layers: list[KvLayer],
        *,
        max_running: int,
        context_length: int,
        record: Record,
    ) -> None:
        self._module, self._backend, self._kv_layers = module, backend, kv_layers
        self.device = backend.device
        self.width = min(-(-context_length // BLOCK_SIZE), kv_layers[0].num_blocks)
        sizes = graph_sizes(max_running)
        self._graphs = {size: _Graph(self, size, record) for size in sorted(sizes, reverse=True)}

    def takes(self, inputs: StepInputs) -> bool:
        """One token for each chunk, all of them sampled, and no more chunks than the largest graph holds."""
        count = inputs.metadata.num_sequences
        is_decode = int(inputs.metadata.query_start_loc[-1]) == count == len(inputs.sampled_rows)
        return is_decode and 0 < count <= max(self._graphs)

    def logits(
        self, inputs: StepInputs, sources: Tensor, staging: InputStaging, before: Tensor | None
    ) -> Tensor:
        """fp32 [chunks, vocab] on the device, until the next call. before: the tokens the sources mean."""
        count = inputs.metadata.num_sequences
        graph = self._graphs[min(size for size in self._graphs if size >= count)]
        staging.send(_padded_parts(inputs, sources, graph.size, self.width), graph.memory)
        if before is not None:
            graph.inputs.take_tokens(before)
        return graph.replay()[:count]

    def forward(self, token_ids: Tensor, metadata: AttentionMetadata) -> Tensor:
        step = PackedStep(self._backend, self._kv_layers, metadata)
        states = hidden_states(self._module, token_ids, step)
        return logits_of_rows(self._module, states, torch.arange(len(token_ids), device=token_ids.device))


class _Graph:
    """For `size` rows, all of them padding at first."""

    def __init__(self, graphs: DecodeGraphs, size: int, record: Record) -> None:
        self.size = size
        empty = _padded_parts(None, None, size, graphs.width)
        sizes = [part.numel() for part in empty]
        self.memory = torch.cat([part.reshape(-1) for part in empty]).to(graphs.device)
        views = self.memory.split(sizes)
        self.inputs = DeviceInputs(*(view.view(part.shape) for view, part in zip(views, empty, strict=True)))
        self.replay = record(lambda: graphs.forward(self.inputs.token_ids.long(), self.inputs.metadata()))


def record_on_cuda() -> Record:
    """Recordings that share one pool of memory; the largest should come first."""
    pool = torch.cuda.graph_pool_handle()

    def record(forward: Forward) -> Forward:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMING_RUNS):
                forward()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            output = forward()

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay

    return record


def _padded_parts(inputs: StepInputs | None, sources: Tensor | None, size: int, width: int) -> list[Tensor]:
    """As host_parts, for `size` rows of a chunk each and tables of that width; without inputs all padding."""
    parts = [
        *(torch.full((size,), fill, dtype=torch.int32) for fill in (PADDING_ID, NO_SOURCE, 0, -1, -1)),
        torch.zeros(size + 1, dtype=torch.int32),
        torch.zeros(size, dtype=torch.int32),
        torch.zeros(size, width, dtype=torch.int32),
    ]
    if inputs is None or sources is None:
        return parts
    given = host_parts(inputs.token_ids, sources, inputs.metadata)
    count = inputs.metadata.num_sequences
    for index in (0, 1, 2, 3, 4, 6):
        parts[index][:count] = given[index][:count]
    parts[5].copy_(torch.arange(size + 1).clamp(max=count))  # chunks past the last have no rows
    parts[7][:count, : given[7].shape[1]] = given[7]
    return parts
