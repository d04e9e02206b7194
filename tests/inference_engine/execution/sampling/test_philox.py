import numpy as np
import pytest

from inference_engine.execution.sampling.philox import philox4x32, uniforms

PUBLISHED = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
"""Known answers of the paper's own implementation: counter, key, result."""


def words(text: str) -> np.ndarray:
    return np.array([[int(word, 16) for word in text.split()]], dtype=np.uint64)


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_published_vectors(counter: str, key: str, result: str) -> None:
    assert philox4x32(words(counter), words(key)).tolist() == words(result).tolist()


def test_rows_are_independent() -> None:
    counters, keys, results = (np.concatenate([words(row[i]) for row in PUBLISHED]) for i in range(3))
    assert philox4x32(counters, keys).tolist() == results.tolist()


def test_uniform_is_built_from_seed_choice_and_position() -> None:
    counter, key, _ = PUBLISHED[2]
    c0, c1, c2, c3 = (int(word, 16) for word in counter.split())
    k0, k1 = (int(word, 16) for word in key.split())
    # The published key's top bit is set, so as a signed seed it is negative.
    seed = (k0 | k1 << 32) - (2**64 if k1 >> 31 else 0)
    [value] = uniforms([seed], [c2 | c3 << 32], [c0 | c1 << 32])
    bits = 0xD16CFE09 << 32 | 0x94FDCCEB
    assert value == ((bits >> 12) + 0.5) / 2**52


def test_negative_and_extreme_seeds_are_their_bits() -> None:
    seeds = [-1, -(2**63), 2**63 - 1, 0]
    values = uniforms(seeds, [0] * 4, [7] * 4)
    assert values.tolist() == uniforms([2**64 - 1, 2**63, 2**63 - 1, 0], [0] * 4, [7] * 4).tolist()
    assert len(set(values.tolist())) == 4


def test_every_argument_matters_and_none_collide() -> None:
    cells = [(seed, choice, position) for seed in range(8) for choice in range(8) for position in range(64)]
    values = uniforms(*zip(*cells, strict=True))
    assert len(set(values.tolist())) == len(cells)
    assert (values > 0).all() and (values < 1).all()
    # 4096 uniforms: the mean's standard deviation is 0.0045.
    assert abs(values.mean() - 0.5) < 0.02
