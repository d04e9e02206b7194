"""`make up` after its set-up: a whole installation under one supervisor, with a fake engine for speed."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from inference_engine.contract.registry import REPLICA_SET_KEY, decode_record, record_key
from servers_of_tests import free_port, wait_until
from source_tree import ROOT

CEILING_S = 90


class Installation:
    """One `up` on a home of its own; its output is read as it comes."""

    def __init__(self, home: Path, model: Path) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("REDIS_URL", "DJANGO_SETTINGS_MODULE")
        } | {
            "OCTAVO_HOME": str(home),
            "OCTAVO_PORT": str(self.port),
            "OCTAVO_MODEL_DIR": str(model),
            "OCTAVO_FAKE": "1",
            "OCTAVO_FAKE_STEP_MS": "1",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
        }
        self.output = ""
        self._lines: queue.Queue[str] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None

    def command(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "operations.up"],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start(self) -> str:
        """Everything that is printed until all runs."""
        self.output = ""
        self._process = self.command()
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self.read_until("Everything runs")
        return self.output

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line)

    def read_until(self, text: str) -> None:
        while text not in self.output:
            try:
                self.output += self._lines.get(timeout=CEILING_S)
            except queue.Empty:
                raise AssertionError(f"never printed {text!r}:\n{self.output}") from None

    def signal(self, which: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(which)

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(CEILING_S)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def key(self) -> str:
        found = re.search(r"octavo_\w+", self.output)
        assert found is not None
        return found[0]

    def engine_pid(self) -> int | None:
        """Of the engine that gateways can find now."""
        with Redis.from_url(f"unix://{self.home}/run/redis.sock") as redis:
            for member in redis.smembers(REPLICA_SET_KEY):
                data = redis.get(record_key(bytes(member).decode()))
                if data is not None:
                    return decode_record(data).pid
        return None

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.url + path, timeout=CEILING_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def complete(self, key: str) -> str:
        body = {"model": self.model(), "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers, method="POST"
        )
        with urllib.request.urlopen(request, timeout=CEILING_S) as answer:
            return str(json.load(answer)["choices"][0]["finish_reason"])

    def model(self) -> str:
        found = re.search(r'"model": "([^"]+)"', self.output)
        assert found is not None
        return found[1]

    def wait_complete(self) -> None:
        """Itself, Redis, engine, ledger writer, gateway, worker, its three processes, clock."""
        wait_until(lambda: len(self.processes()) == 10, "everything runs", CEILING_S)

    def wait_gone(self) -> None:
        wait_until(lambda: not self.processes(), "all processes are gone", CEILING_S)

    def processes(self) -> set[int]:
        """Every process that has this home in its environment, or (Redis hides its own) in its command."""
        mark = os.fsencode(self.home)
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes():
                    found.add(int(folder.name))
            except OSError:
                continue
        return found


@pytest.fixture
def installation(tmp_path: Path, smollm2_dir: Path, redis_binary: Path) -> Iterator[Installation]:
    made = Installation(tmp_path / "home", smollm2_dir)
    yield made
    made.close()
    made.wait_gone()


def test_first_start_stop_and_second_start(installation: Installation) -> None:
    first = installation.start()
    key = installation.key
    assert "first token after" in first
    assert first.count(key) > 1  # once by itself, and in the lines to paste
    password = re.search(r"login +operator / (\S+)", first)
    assert password is not None
    assert installation.complete(key) == "length"
    assert installation.status("/ready") == 200

    other = installation.command()
    told, _ = other.communicate(timeout=CEILING_S)
    assert other.returncode == 1
    assert "already runs" in told

    logs = b"".join(path.read_bytes() for path in (installation.home / "logs").iterdir())
    assert logs
    assert key.encode() not in logs
    assert password[1].encode() not in logs

    installation.signal(signal.SIGINT)
    assert installation.wait() == 0
    installation.wait_gone()

    second = installation.start()
    assert key not in second
    assert "make key" in second
    assert installation.complete(key) == "length"
    installation.signal(signal.SIGTERM)
    assert installation.wait() == 0


def test_an_engine_that_is_lost_is_replaced_and_no_child_outlives_a_supervisor_that_is_killed(
    installation: Installation,
) -> None:
    installation.start()
    installation.wait_complete()
    for how in (signal.SIGKILL, signal.SIGSTOP):
        check_replacement(installation, how)
    installation.signal(signal.SIGKILL)
    installation.wait()
    installation.wait_gone()


def check_replacement(installation: Installation, how: signal.Signals) -> None:
    first = installation.engine_pid()
    before = installation.processes()
    assert first is not None
    os.kill(first, how)
    wait_until(lambda: installation.engine_pid() not in (None, first), "another engine", CEILING_S)
    wait_until(lambda: installation.status("/ready") == 200, "ready again", CEILING_S)
    assert installation.complete(installation.key) == "length"
    assert before - installation.processes() == {first}  # nothing else was started again


def test_a_busy_port_is_named_before_anything_starts(installation: Installation) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", installation.port))
        taken.listen()
        process = installation.command()
        told, _ = process.communicate(timeout=CEILING_S)
    assert process.returncode == 1
    assert f"Port {installation.port} is in use" in told
    assert "OCTAVO_PORT" in told
    assert not (installation.home / "logs").exists()
