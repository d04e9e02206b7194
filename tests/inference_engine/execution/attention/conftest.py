from collections.abc import Iterator

import pytest

from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.build import find_compiler
from inference_engine.execution.attention.select import choose_backend
from matrix_threads import matrix_threads
from requirements_of_tests import require


def backend_named(name: str) -> AttentionBackend:
    if name == "cpu":
        require(find_compiler(), "no g++: the attention kernel can't be compiled")
    return choose_backend(name)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """These tensors are small: waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield


@pytest.fixture(params=["reference", "cpu", "cpu-fallback"])
def backend(request: pytest.FixtureRequest) -> AttentionBackend:
    return backend_named(request.param)


@pytest.fixture(params=["reference", "cpu"])
def invariant_backend(request: pytest.FixtureRequest) -> AttentionBackend:
    return backend_named(request.param)


@pytest.fixture
def cpu_backend() -> AttentionBackend:
    return backend_named("cpu")
