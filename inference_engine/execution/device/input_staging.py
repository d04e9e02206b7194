"""The integers of a step on their way to the device: one copy, from pinned memory, while the host goes on.

Two buffers take turns, so that a step's can be filled while the copy of the step before may still be reading
its own.

    | ids T | sources T | positions T | slots T | sequences T | query starts n + 1 | lengths n | table n x b |

A source is the row of the step before whose token this row's id is, not yet known on the host; -1 for an id
that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inference_engine.execution.attention.metadata import AttentionMetadata

NUM_BUFFERS = 2
NO_SOURCE = -1


@dataclass(frozen=True, slots=True)
class DeviceInputs:
    """Views of a step's integers on the device, all int32."""

    token_ids: Tensor
    sources: Tensor
    positions: Tensor
    slot_mapping: Tensor
    sequence_of_row: Tensor
    query_start_loc: Tensor
    seq_lens: Tensor
    block_table: Tensor

    def take_tokens(self, tokens: Tensor) -> None:
        """Fill in the ids that the step before left on the device, int64 [its sampled rows]."""
        known = tokens[self.sources.clamp(min=0).long()].to(torch.int32)
        self.token_ids.copy_(torch.where(self.sources >= 0, known, self.token_ids))

    def metadata(self) -> AttentionMetadata:
        return AttentionMetadata(
            query_start_loc=self.query_start_loc,
            seq_lens=self.seq_lens,
            block_table=self.block_table,
            slot_mapping=self.slot_mapping.long(),
            positions=self.positions.long(),
            sequence_of_row=self.sequence_of_row,
        )


def host_parts(token_ids: Tensor, sources: Tensor, metadata: AttentionMetadata) -> list[Tensor]:
    """In the order of DeviceInputs."""
    return [
        token_ids,
        sources,
        metadata.positions,
        metadata.slot_mapping,
        metadata.sequence_of_row,
        metadata.query_start_loc,
        metadata.seq_lens,
        metadata.block_table,
    ]


class InputStaging:
    """To one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers = [_Buffer(device) for _ in range(NUM_BUFFERS)]
        self._turn = 0

    def send(self, parts: Sequence[Tensor], target: Tensor | None = None) -> list[Tensor]:
        """int32 copies on the device, of the parts' shapes; one after another in target, if there is one."""
        sizes = [part.numel() for part in parts]
        buffer = self._buffers[self._turn]
        self._turn = (self._turn + 1) % NUM_BUFFERS
        host = buffer.take(sum(sizes))
        for part, place in zip(parts, host.split(sizes), strict=True):
            place.copy_(part.reshape(-1))
        if target is None:
            target = torch.empty(sum(sizes), dtype=torch.int32, device=self._device)
        target.copy_(host, non_blocking=True)
        buffer.note_copy()
        return [place.view(part.shape) for place, part in zip(target.split(sizes), parts, strict=True)]


class _Buffer:
    """Pinned memory, and the event after which its last copy has been read."""

    def __init__(self, device: torch.device) -> None:
        self._is_pinned = device.type == "cuda"
        self._memory = torch.empty(0, dtype=torch.int32)
        self._copied = torch.cuda.Event() if self._is_pinned else None

    def take(self, size: int) -> Tensor:
        """int32 [size] that nobody reads any more."""
        if self._copied is not None:
            self._copied.synchronize()
        if len(self._memory) < size:
            self._memory = torch.empty(2 * size, dtype=torch.int32, pin_memory=self._is_pinned)
        return self._memory[:size]

    def note_copy(self) -> None:
        if self._copied is not None:
            self._copied.record()
