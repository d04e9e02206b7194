"""Black-box tests over HTTP: against BASE_URL with API_KEY and MODEL, or against stacks started here.

`stack` serves the real model, `fake_stack` made-up tokens at a hundred steps a second; each is started once.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from http_service import Service
from octavo_stack import FAKE_ENGINE, Stack
from scripted_stack import ScriptedStack

REAL_START_CEILING_S = 280.0


@pytest.fixture(scope="session")
def stack(redis_binary: Path, smollm2_dir: Path) -> Iterator[Stack]:
    """Everything, with the real model on two threads."""
    with Stack.opened(redis_binary, smollm2_dir) as stack:
        stack.prepare()
        stack.start_engine("--num-blocks", "1024", "--max-running", "64")
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.wait_ready(REAL_START_CEILING_S)
        yield stack


@pytest.fixture(scope="session")
def fake_stack(redis_binary: Path, smollm2_dir: Path) -> Iterator[Stack]:
    """Everything, with a fake engine of 64 places, which may be killed and restarted."""
    with Stack.opened(redis_binary, smollm2_dir) as stack:
        stack.prepare()
        stack.start_engine(*FAKE_ENGINE)
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.wait_ready()
        yield stack


@pytest.fixture(scope="session")
def scripted(redis_binary: Path, smollm2_dir: Path) -> Iterator[ScriptedStack]:
    """A gateway whose engine says what the test tells it to. It turns as long as it lives."""
    with tempfile.TemporaryDirectory(prefix="octavo-", ignore_cleanup_errors=True) as home:
        stack = ScriptedStack(Path(home), redis_binary, smollm2_dir)
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()


@pytest.fixture(scope="session")
def shared_service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """The service of BASE_URL, or the fake engine's, for modules that look at its health once."""
    service = _given_service() or Service.of(request.getfixturevalue("fake_stack"))
    yield service
    service.close()


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A served model; when the test is over it must be as healthy as before."""
    service = _given_service() or Service.of(request.getfixturevalue("fake_stack"))
    yield service
    service.check_health()
    service.close()


@pytest.fixture
def real_service(request: pytest.FixtureRequest, smollm2_dir: Path) -> Iterator[Service]:
    """The real model, for what made-up tokens can't show."""
    service = _given_service() or Service.of(request.getfixturevalue("stack"))
    yield service
    service.check_health()
    service.close()


@pytest.fixture
def fake_service(fake_stack: Stack) -> Iterator[Service]:
    """The fake engine, whose process the test may harm; at the end it is up again."""
    service = Service.of(fake_stack)
    yield service
    service.check_health()
    service.close()


def _given_service() -> Service | None:
    """The running server that BASE_URL, API_KEY and MODEL name; its first model where none is named."""
    given = os.environ.get("BASE_URL")
    if not given:
        return None
    service = Service(given, os.environ["API_KEY"], os.environ.get("MODEL", ""))
    service.model = (
        service.model or service.http.get("/v1/models", headers=service.headers()).json()["data"][0]["id"]
    )
    return service


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"stack", "real_service"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real_model)
            item.add_marker(pytest.mark.timeout(REAL_START_CEILING_S + 200))
