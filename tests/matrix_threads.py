"""How many threads torch computes with, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def matrix_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
