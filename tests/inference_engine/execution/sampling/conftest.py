from collections.abc import Iterator

import pytest

from inference_engine.execution.sampling import sampler
from matrix_threads import matrix_threads


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield


@pytest.fixture(params=["native", "torch"])
def each_kind_of_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samplers made in the test draw with our own kernel, then with plain torch."""
    if request.param == "native":
        request.getfixturevalue("compiler")
    monkeypatch.setattr(sampler, "has_native_draws", lambda: request.param == "native")
