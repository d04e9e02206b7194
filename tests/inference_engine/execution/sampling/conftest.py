from collections.abc import Iterator

import pytest

from matrix_threads import matrix_threads


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield
