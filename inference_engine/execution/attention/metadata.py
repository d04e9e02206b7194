"""What one step's attention needs to know about its packed query rows.

A step packs the query rows of all its chunks into one tensor, the rows of a chunk one after another. A
*sequence* below is one chunk; rows after the last chunk are padding (they write nothing and attend to
nothing).

    row             0   1   2 | 3 | 4   5   6   7 | pad pad
    sequence        0   0   0 | 1 | 2   2   2   2 |  -1  -1
    position        0   1   2 |41 |32  33  34  35 |   0   0
    query_start_loc 0           3   4               8
    seq_lens        3          42  36
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from inference_engine.contract.limits import BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class AttentionMetadata:
    """Shared by every layer of one step; on the CPU, or on the backend's device.

    n sequences, T query rows (padding included).

    A query at absolute position p attends to the KV positions max(0, p - window + 1) .. p of its sequence.
    """

    query_start_loc: Tensor
    """int32 [n + 1]: rows query_start_loc[s] .. query_start_loc[s + 1] - 1 belong to sequence s."""
    seq_lens: Tensor
    """int32 [n]: KV positions the last query of the sequence sees without a window (start + chunk length)."""
    block_table: Tensor
    """int32 [n, max_blocks], rows padded with 0: block_table[s, p // 16] holds position p of sequence s."""
    slot_mapping: Tensor
    """int64 [T]: block * 16 + offset where the row's K and V are written; -1 for padding."""
    positions: Tensor
    """int64 [T]: absolute position of each row in its sequence; 0 for padding."""
    sequence_of_row: Tensor
    """int32 [T]: which sequence a row belongs to; -1 for padding."""

    def to(self, device: torch.device) -> "AttentionMetadata":
        """The same on a device; itself where it is there already."""
        moved = {field.name: getattr(self, field.name).to(device) for field in fields(self)}
        return AttentionMetadata(**moved)

    @property
    def num_rows(self) -> int:
        """Query rows, padding included."""
        return self.positions.shape[0]

    @property
    def num_sequences(self) -> int:
        return self.seq_lens.shape[0]


def build_metadata(
    starts: Sequence[int],
    lengths: Sequence[int],
    block_tables: Sequence[Sequence[int]],
    padded_rows: int | None = None,
) -> AttentionMetadata:
    """Metadata of chunks that cover positions starts[s] .. starts[s] + lengths[s] - 1 of their sequences.

    Every block table must cover its chunk; what lies beyond is not looked at. `padded_rows` (at least the sum
    of the lengths) adds padding rows. Raises ValueError on an empty chunk or a table that is too short.
    """
    if min(lengths, default=1) < 1:
        raise ValueError("a chunk needs at least one token")
    num_tokens = sum(lengths)
    num_padding = 0 if padded_rows is None else padded_rows - num_tokens
    if num_padding < 0:
        raise ValueError(f"{num_tokens} rows do not fit {padded_rows} padded rows")
    start = np.asarray(starts, dtype=np.int64)
    length = np.asarray(lengths, dtype=np.int64)
    table = _padded_table(start + length, block_tables)
    if num_tokens == len(lengths):  # nothing but decodes: most steps, and the ones that should be short
        bounds = np.arange(num_tokens + 1)
        sequence, position = bounds[:-1], start
    else:
        bounds = np.zeros(len(length) + 1, dtype=np.int64)
        np.cumsum(length, out=bounds[1:])
        sequence = np.repeat(np.arange(len(length)), length)
        position = np.arange(num_tokens) - np.repeat(bounds[:-1] - start, length)
    slot = table[sequence, position // BLOCK_SIZE].astype(np.int64) * BLOCK_SIZE + position % BLOCK_SIZE
    return AttentionMetadata(
        query_start_loc=torch.from_numpy(bounds.astype(np.int32)),
        seq_lens=torch.from_numpy((start + length).astype(np.int32)),
        block_table=torch.from_numpy(table),
        slot_mapping=_padded(slot, num_padding, -1, np.int64),
        positions=_padded(position, num_padding, 0, np.int64),
        sequence_of_row=_padded(sequence, num_padding, -1, np.int32),
    )


def _padded_table(ends: np.ndarray, block_tables: Sequence[Sequence[int]]) -> np.ndarray:
    """int32 [n, max_blocks] that holds exactly the blocks each sequence needs up to its end."""
    num_blocks = -(-ends // BLOCK_SIZE)
    table = np.zeros((len(ends), int(num_blocks.max(initial=0))), dtype=np.int32)
    for index, (blocks, count) in enumerate(zip(block_tables, num_blocks.tolist(), strict=True)):
        if len(blocks) < count:
            raise ValueError(f"sequence {index} needs {count} blocks, its table holds {len(blocks)}")
        table[index, :count] = blocks[:count]
    return table


def _padded(
    values: np.ndarray, num_padding: int, fill: int, dtype: type[np.int32] | type[np.int64]
) -> Tensor:
    if not num_padding:
        return torch.from_numpy(values.astype(dtype))
    padding = np.full(num_padding, fill, dtype=dtype)
    return torch.from_numpy(np.concatenate([values.astype(dtype), padding]))
