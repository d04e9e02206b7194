import pytest

from inference_engine.execution.attention.metadata import build_metadata


def test_three_chunks_and_two_rows_of_padding() -> None:
    metadata = build_metadata([0, 41, 32], [3, 1, 4], [[7], [4, 5, 6], [1, 2, 3, 9]], padded_rows=10)
    assert metadata.query_start_loc.tolist() == [0, 3, 4, 8]
    assert metadata.seq_lens.tolist() == [3, 42, 36]
    assert metadata.positions.tolist() == [0, 1, 2, 41, 32, 33, 34, 35, 0, 0]
    assert metadata.sequence_of_row.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, -1, -1]
    assert metadata.slot_mapping.tolist() == [112, 113, 114, 105, 48, 49, 50, 51, -1, -1]
    assert metadata.block_table.tolist() == [[7, 0, 0], [4, 5, 6], [1, 2, 3]]
    assert (metadata.num_rows, metadata.num_sequences) == (10, 3)


def test_no_chunks_is_only_padding() -> None:
    metadata = build_metadata([], [], [], padded_rows=2)
    assert metadata.sequence_of_row.tolist() == [-1, -1] and metadata.num_sequences == 0


def test_a_block_table_that_does_not_cover_its_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence 1 needs 2 blocks"):
        build_metadata([0, 16], [1, 1], [[1], [2]])


def test_an_empty_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        build_metadata([3], [0], [[1]])


def test_more_rows_than_the_padded_count_are_refused() -> None:
    with pytest.raises(ValueError, match="3 rows do not fit 2"):
        build_metadata([0], [3], [[1]], padded_rows=2)
