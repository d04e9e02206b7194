import torch

from inference_engine.execution.attention.metadata import build_metadata
from inference_engine.execution.device.input_staging import DeviceInputs, InputStaging, host_parts

CPU = torch.device("cpu")


def test_a_step_arrives_as_it_was_sent_in_one_piece() -> None:
    metadata = build_metadata([0, 30], [3, 1], [[4], [7, 2]], padded_rows=6)
    ids, sources = torch.tensor([5, 6, 7, 0, 0, 0]), torch.tensor([-1, -1, -1, 2, -1, -1])
    staging = InputStaging(CPU)
    arrived = DeviceInputs(*staging.send(host_parts(ids, sources, metadata)))
    arrived.take_tokens(torch.tensor([11, 12, 13]))
    assert arrived.token_ids.tolist() == [5, 6, 7, 13, 0, 0]
    moved = arrived.metadata()
    for name in (
        "query_start_loc",
        "seq_lens",
        "block_table",
        "slot_mapping",
        "positions",
        "sequence_of_row",
    ):
        assert torch.equal(getattr(moved, name), getattr(metadata, name))


def test_buffers_take_turns_and_what_arrived_stays() -> None:
    staging = InputStaging(CPU)
    arrived = [staging.send([torch.full((3,), number)])[0] for number in range(4)]
    assert [each.tolist() for each in arrived] == [[number] * 3 for number in range(4)]
    target = torch.zeros(5, dtype=torch.int32)
    parts = staging.send([torch.tensor([1, 2]), torch.tensor([[3], [4], [5]])], target)
    assert target.tolist() == [1, 2, 3, 4, 5] and parts[1].shape == (3, 1)
    assert parts[0].data_ptr() == target.data_ptr()
