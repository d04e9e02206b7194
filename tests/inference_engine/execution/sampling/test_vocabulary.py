import pytest
import torch

from inference_engine.execution.sampling.vocabulary import draw, first_argmax, invert, reduce_blocks

SIZES = [1, 5, 255, 256, 257, 1000, 4099]


@pytest.mark.parametrize("size", SIZES)
def test_reduce_blocks_covers_every_id_once(size: int) -> None:
    values = torch.randn(3, size)
    blocks = reduce_blocks(values, torch.amax)
    wanted = torch.stack([part.amax(1) for part in values.split(256, 1)], 1)
    assert torch.equal(blocks, wanted)


@pytest.mark.parametrize("size", SIZES)
def test_first_argmax_is_the_lowest_id_among_equals(size: int) -> None:
    values = torch.randint(0, 3, (20, size), generator=torch.Generator().manual_seed(size)).float()
    wanted = [row.index(max(row)) for row in values.tolist()]
    assert first_argmax(values).tolist() == wanted


def test_invert_skips_weightless_entries_and_stays_below_the_total() -> None:
    cumulative = torch.tensor([[0.0, 0.25, 0.25, 1.0, 1.0]], dtype=torch.float64)
    for target, index in [(0.0, 1), (0.2499, 1), (0.25, 3), (0.999, 3), (1.0, 3), (2.0, 3)]:
        assert invert(cumulative, torch.tensor([target], dtype=torch.float64)).tolist() == [index]


@pytest.mark.parametrize("size", SIZES)
def test_draw_is_the_inverse_of_the_cumulative_sum(size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    weights = torch.rand(1, size, generator=generator) * (torch.rand(1, size, generator=generator) > 0.5)
    weights[0, size // 2] = 1.0
    cumulative = weights[0].double().cumsum(0)
    for uniform in torch.rand(50, dtype=torch.float64, generator=generator):
        token = int(draw(weights, uniform.reshape(1)))
        target = uniform * cumulative[-1]
        # Sums by block round differently than one long sum: by far less than this.
        assert cumulative[token] >= target - 1e-4
        assert token == 0 or cumulative[token - 1] <= target + 1e-4
        assert weights[0, token] > 0
