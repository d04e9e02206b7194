"""Attention over paged KV blocks in Triton: one kernel for prefill and decode, and the store that feeds it.

    keys, values    [num_blocks][K][16][D]    a block's 16 tokens of one KV head lie together

    position p of a sequence: block block_table[p / 16], token p % 16 of that block

A program computes up to ROWS query rows of one chunk for one KV head: the query heads that share it are
packed into one matrix of ROWS * GROUP rows, so that a single decode row fills the tensor cores' tile as well.
It walks over the KV in tiles of TILE absolute positions with an online softmax (Milakov and Gimelshein,
"Online normalizer calculation for softmax", 2018; Dao, "FlashAttention-2", 2023). Tiles begin at multiples of
TILE, and ROWS and TILE are the same for prefill and decode, so what a row adds up, and in which order, is a
matter of its own position alone; tiles that a row doesn't see leave its sums as they are, to the bit.

With splits, programs take equal shares of one row's tiles and `combine` puts their sums together (Dao et al.,
"Flash-Decoding", 2023): faster for few long contexts, but a row's rounding then depends on how many splits.
"""

import triton
import triton.language as tl

BLOCK = tl.constexpr(16)


@triton.jit
def store(
    key, value, slot_mapping, keys, values,
    key_row, key_head, value_row, value_head, kv_block,
    DIM: tl.constexpr, PADDED_DIM: tl.constexpr,
):  # fmt: skip
    """Program (row, KV head): one row's key and value to its slot; slot -1 writes nothing."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.load(slot_mapping + row)
    if slot >= 0:
        d = tl.arange(0, PADDED_DIM)
        target = (slot // BLOCK) * kv_block + (head * BLOCK + slot % BLOCK) * DIM + d
        tl.store(keys + target, tl.load(key + row * key_row + head * key_head + d, d < DIM), d < DIM)
        tl.store(values + target, tl.load(value + row * value_row + head * value_head + d, d < DIM), d < DIM)


@triton.jit(do_not_specialize=["window", "table_row", "num_rows"])
def attend(
    query, keys, values, output, partial_output, partial_maximum, partial_sum,
    sequence_of_row, query_start_loc, seq_lens, block_table, sinks,
    scale, softcap, window,
    query_row, query_head, table_row, kv_block, num_rows,
    HEADS: tl.constexpr, GROUP: tl.constexpr, DIM: tl.constexpr, PADDED_DIM: tl.constexpr,
    ROWS: tl.constexpr, PACKED: tl.constexpr, TILE: tl.constexpr,
    HAS_CAP: tl.constexpr, HAS_SINKS: tl.constexpr, SPLITS: tl.constexpr, MULTIPLIES: tl.constexpr,
):  # fmt: skip
    """Program (row, KV head, split): the rows from this one on, if it is the ROWS-th of its chunk.

    output [T][HEADS][DIM]; with SPLITS > 1 instead partial_output [SPLITS][T][HEADS][DIM], not yet divided,
    and partial_maximum, partial_sum [SPLITS][T][HEADS]. window: positions seen; 0 sees all. PACKED is ROWS *
    GROUP at least. MULTIPLIES: the type of the products' factors, rounded to the KV's type in any case.
    """
    first_row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    packed, d = tl.arange(0, PACKED), tl.arange(0, PADDED_DIM)
    sequence = tl.load(sequence_of_row + first_row)
    if sequence < 0:  # padding: its heads are zeros
        place = (first_row.to(tl.int64) * HEADS + kv_head * GROUP + packed[:, None]) * DIM + d[None, :]
        is_head = (packed[:, None] < GROUP) & (d[None, :] < DIM) & (split == 0)
        tl.store(output + place, tl.zeros([PACKED, PADDED_DIM], output.dtype.element_ty), is_head)
        return
    chunk_start, chunk_end = tl.load(query_start_loc + sequence), tl.load(query_start_loc + sequence + 1)
    if (first_row - chunk_start) % ROWS != 0:
        return
    seq_len = tl.load(seq_lens + sequence)
    row = first_row + packed // GROUP
    head = kv_head * GROUP + packed % GROUP
    is_real = (packed < ROWS * GROUP) & (row < chunk_end)
    position = seq_len - chunk_end + row
    heads = tl.load(
        query + row[:, None].to(tl.int64) * query_row + head[:, None] * query_head + d[None, :],
        is_real[:, None] & (d[None, :] < DIM),
        0.0,
    ).to(MULTIPLIES)
    maximum = tl.full([PACKED], -float("inf"), tl.float32)
    total = tl.zeros([PACKED], tl.float32)
    if HAS_SINKS:  # noqa: SIM102 - one is known when compiling, the other is not
        if split == 0:  # a sink is one more token, of weight e^sink and no value
            maximum = tl.load(sinks + head, is_real, -float("inf")).to(tl.float32)
            total = tl.where(maximum > -float("inf"), 1.0, 0.0)
    weighted = tl.zeros([PACKED, PADDED_DIM], tl.float32)

    first_position = seq_len - chunk_end + first_row
    end = tl.minimum(first_position + ROWS, seq_len)
    begin = tl.where(window > 0, tl.maximum(first_position - window + 1, 0), 0)
    first_tile, last_tile = begin // TILE, (end + TILE - 1) // TILE
    share = (last_tile - first_tile + SPLITS - 1) // SPLITS
    first_tile += split * share
    last_tile = tl.minimum(first_tile + share, last_tile)
    for tile in range(first_tile, last_tile):
        kv_position = tile * TILE + tl.arange(0, TILE)
        is_written = kv_position < seq_len
        block = tl.load(block_table + sequence * table_row + kv_position // BLOCK, is_written, 0).to(tl.int64)
        place = block * kv_block + (kv_head * BLOCK + kv_position % BLOCK) * DIM
        # What nobody wrote may be NaN, which a weight of 0 would not silence.
        is_kv = is_written[:, None] & (d[None, :] < DIM)
        tile_keys = tl.load(keys + place[:, None] + d[None, :], is_kv, 0.0)
        tile_values = tl.load(values + place[:, None] + d[None, :], is_kv, 0.0)
        scores = tl.dot(heads, tl.trans(tile_keys.to(MULTIPLIES)), input_precision="ieee") * scale
        if HAS_CAP:
            scores = softcap * (2 * tl.sigmoid(2 * scores / softcap) - 1)
        distance = position[:, None] - kv_position[None, :]
        is_seen = (distance >= 0) & is_real[:, None] & ((window <= 0) | (distance < window))
        scores = tl.where(is_seen, scores, -float("inf"))
        highest = tl.maximum(maximum, tl.max(scores, 1))
        # Before a row has seen anything its maximum is -inf, and so is the difference's both sides.
        reference = tl.where(highest > -float("inf"), highest, 0.0)
        weights = tl.exp(scores - reference[:, None])
        decay = tl.exp(maximum - reference)
        total = total * decay + tl.sum(weights, 1)
        weighted = weighted * decay[:, None]
        weights = weights.to(tile_values.dtype).to(MULTIPLIES)
        weighted += tl.dot(weights, tile_values.to(MULTIPLIES), input_precision="ieee")
        maximum = highest

    is_out = is_real[:, None] & (d[None, :] < DIM)
    if SPLITS == 1:
        place = (row.to(tl.int64) * HEADS + head)[:, None] * DIM + d[None, :]
        divisor = tl.where(is_real, total, 1.0)[:, None]
        tl.store(output + place, (weighted / divisor).to(output.dtype.element_ty), is_out)
    else:
        line = (split * num_rows + row).to(tl.int64) * HEADS + head
        tl.store(partial_output + line[:, None] * DIM + d[None, :], weighted, is_out)
        tl.store(partial_maximum + line, maximum, is_real)
        tl.store(partial_sum + line, total, is_real)


@triton.jit(do_not_specialize=["num_rows"])
def combine(
    partial_output, partial_maximum, partial_sum, output, sequence_of_row, num_rows,
    HEADS: tl.constexpr, DIM: tl.constexpr, PADDED_DIM: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Program (row, head): the splits' sums on one scale. Padding rows are left alone."""
    row, head = tl.program_id(0), tl.program_id(1)
    if tl.load(sequence_of_row + row) < 0:
        return
    d = tl.arange(0, PADDED_DIM)
    maximum = -float("inf")
    for split in tl.static_range(SPLITS):
        line = (split * num_rows + row) * HEADS + head
        maximum = tl.maximum(maximum, tl.load(partial_maximum + line))
    total = 0.0
    weighted = tl.zeros([PADDED_DIM], tl.float32)
    for split in tl.static_range(SPLITS):
        line = (split * num_rows + row).to(tl.int64) * HEADS + head
        decay = tl.exp(tl.load(partial_maximum + line) - maximum)
        total += tl.load(partial_sum + line) * decay
        weighted += tl.load(partial_output + line * DIM + d, d < DIM, 0.0) * decay
    place = (row.to(tl.int64) * HEADS + head) * DIM + d
    tl.store(output + place, (weighted / total).to(output.dtype.element_ty), d < DIM)
