"""Where things are kept, who may look, and that one home has one supervisor."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from operations.home import (
    MAX_SOCKET_PATH_BYTES,
    Home,
    HomeInUse,
    home_from,
    make_private,
    process_environment,
)
from source_tree import ROOT


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make_folders()
    assert {mode(folder) for folder in (home.path, home.logs, home.redis_data, home.sockets)} == {0o700}
    assert home.sockets == home.path / "run"


def test_a_long_home_gets_a_short_socket_folder_and_always_the_same(tmp_path: Path) -> None:
    home = Home(tmp_path / ("x" * MAX_SOCKET_PATH_BYTES))
    assert len(os.fsencode(home.redis_socket)) <= MAX_SOCKET_PATH_BYTES
    assert home.sockets == Home(home.path).sockets != Home(tmp_path / ("y" * MAX_SOCKET_PATH_BYTES)).sockets


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        make_private(tmp_path / "run")


def test_a_second_supervisor_is_told_who_the_first_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    lock = home.lock()
    program = (
        f"from operations.home import Home; from pathlib import Path; Home(Path({str(tmp_path)!r})).lock()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "platform")}
    other = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert HomeInUse.__name__ in other.stderr
    assert f"process {os.getpid()}" in other.stderr
    os.close(lock)
    os.close(home.lock())


@pytest.mark.parametrize("name", ["OCTAVO_KV_BYTES", "OCTAVO_NUM_BLOCKS"])
def test_the_pool_is_modest_unless_somebody_says_how_large_it_is(tmp_path: Path, name: str) -> None:
    assert process_environment(Home(tmp_path), {})["OCTAVO_KV_BYTES"] == str(2**30)
    told = process_environment(Home(tmp_path), {name: "64"})
    assert told[name] == "64" and told.get("OCTAVO_KV_BYTES") in (None, "64")


def test_children_find_the_home_s_redis_and_model(tmp_path: Path) -> None:
    environment = process_environment(home_from({"OCTAVO_HOME": str(tmp_path)}), {"PATH": "/bin"})
    assert environment["OCTAVO_REDIS_URL"] == f"unix://{tmp_path}/run/redis.sock"
    assert environment["OCTAVO_MODEL_DIR"].startswith(str(tmp_path))
    assert environment["PATH"] == "/bin"


@pytest.mark.parametrize("name", ["OCTAVO_REDIS_URL", "REDIS_URL"])
def test_a_redis_that_is_given_is_used(name: str, tmp_path: Path) -> None:
    environment = process_environment(Home(tmp_path), {name: "redis://elsewhere:6379/0"})
    assert environment["OCTAVO_REDIS_URL"] == "redis://elsewhere:6379/0"
