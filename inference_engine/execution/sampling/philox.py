"""Counter-based noise: Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC
2011).

A uniform is a function of (seed, choice, position) and of nothing else: no state to save, so a request that
is preempted, replayed or moved to another engine draws the same numbers again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NUM_ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
"""Weyl constants: the golden ratio and the square root of 3, less 1, as fractions of 2^32."""

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

Words = NDArray[np.uint64]


def philox4x32(counter: Words, key: Words) -> Words:
    """Ten rounds: counter [n, 4] and key [n, 2] of 32-bit words held in uint64 -> [n, 4], the same."""
    c0, c1, c2, c3 = counter.T
    k0, k1 = key.T
    for _ in range(NUM_ROUNDS):
        product0, product1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> HALF) ^ c1 ^ k0,
            product1 & WORD,
            (product0 >> HALF) ^ c3 ^ k1,
            product0 & WORD,
        )
        k0, k1 = (k0 + KEY_STEPS[0]) & WORD, (k1 + KEY_STEPS[1]) & WORD
    return np.stack([c0, c1, c2, c3], axis=1)


def uniforms(seeds: Sequence[int], choices: Sequence[int], positions: Sequence[int]) -> NDArray[np.float64]:
    """One number strictly between 0 and 1 for each row, with 52 random bits.

    The key is the seed's 64 bits (a negative seed as its two's complement), the counter is position in its
    lower and choice in its upper 64 bits.
    """
    seed_bits = np.array([seed & 0xFFFFFFFFFFFFFFFF for seed in seeds], dtype=np.uint64)
    position, choice = np.array(positions, dtype=np.uint64), np.array(choices, dtype=np.uint64)
    counter = np.stack([*_halves(position), *_halves(choice)], axis=1)
    words = philox4x32(counter, np.stack(_halves(seed_bits), axis=1))
    bits = (words[:, 0] << HALF | words[:, 1]) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def _halves(values: Words) -> tuple[Words, Words]:
    """Lower and upper 32 bits."""
    return values & WORD, values >> HALF
