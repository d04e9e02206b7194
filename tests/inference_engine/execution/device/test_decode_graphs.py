import pytest

from inference_engine.execution.device.decode_graphs import graph_sizes


@pytest.mark.parametrize(
    ("max_running", "sizes"),
    [(1, [1]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 8]), (17, [1, 2, 4, 8, 16, 24])],
)
def test_every_batch_has_a_graph_not_much_larger(max_running: int, sizes: list[int]) -> None:
    assert graph_sizes(max_running) == sizes
