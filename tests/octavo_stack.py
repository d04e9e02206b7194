"""A whole Octavo in processes of its own: Redis, database, engine, ledger writer, gateway."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from daytime import where_it_is_noon
from engine_figures import engine_figures
from inference_engine.contract.events import Stats
from servers_of_tests import RedisServer, free_port, nicely, tied, wait_until

ROOT = Path(__file__).resolve().parent.parent

FAKE_ENGINE = ("--fake", "--fake-step-ms", "10", "--num-blocks", "2048", "--max-running", "64")
"""A hundred tokens a second for each of 64 requests."""

SetLimit = Callable[..., None]
"""(kind, value, *flags): as `manage.py set_limit` takes them, for one tenant."""

PREPARE = """
import django, json, sys
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False, stdout=sys.stderr)
from api_keys.services import create_key
from tenants.services import create_tenant
keys = {}
for name in ("alice", "bob", "charlie"):
    tenant = create_tenant(name=name, slug=name, time_zone=sys.argv[1])
    keys[name] = create_key(tenant, "test", scopes=["inference", "batch"])[1]
print(json.dumps(keys))
"""


@dataclass
class Stack:
    """Start what is needed, in order: `start_redis`, `prepare`, `start_engine`, `start_gateway`."""

    home: Path
    redis_binary: Path
    model_dir: Path
    model: str = "smollm2"
    keys: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    port: int = 0
    metrics_ports: dict[str, int] = field(default_factory=dict)
    """Of engines."""
    nice: int = 0
    """Of what runs beside the engine. Where speeds are measured: as `make up` has it."""
    is_tied: bool = False
    """Its processes end with this one, even if that is killed; those who start them must not be short-lived
    threads.
    """

    def __post_init__(self) -> None:
        self.redis = RedisServer(self.redis_binary, self.home, nice=self.nice, is_tied=self.is_tied)
        self.environment = {
            **os.environ,
            "OCTAVO_HOME": str(self.home),
            "REDIS_URL": self.redis.url,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
            "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        }

    @classmethod
    @contextlib.contextmanager
    def opened(cls, redis_binary: Path, model_dir: Path, *, nice: int = 0) -> Iterator[Self]:
        """In a folder of its own; in the end every process is stopped."""
        with tempfile.TemporaryDirectory(prefix="octavo-", ignore_cleanup_errors=True) as home:
            stack = cls(Path(home), redis_binary, model_dir, nice=nice)
            try:
                yield stack
            finally:
                stack.stop()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Redis, and a database with tenants alice, bob and charlie, each with a key."""
        self.redis.start()
        done = subprocess.run(
            [sys.executable, "-c", PREPARE, where_it_is_noon()],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr.decode()
        self.keys = json.loads(done.stdout.splitlines()[-1])

    def start_engine(self, *flags: str, name: str = "engine") -> None:
        address = f"unix:{self.home / name}.sock"
        common = ["--model-dir", str(self.model_dir), "--model-name", self.model, "--address", address]
        common += ["--replica-id", name, "--metrics-port", str(self._metrics_port(name))]
        self._start_command(name, 0, "-m", "inference_engine", *common, *flags)

    def figures_of(self, name: str) -> Stats | None:
        """At this moment. None: it does not answer."""
        return engine_figures(self._metrics_port(name))

    def _metrics_port(self, name: str) -> int:
        """A process of that name keeps it."""
        return self.metrics_ports.setdefault(name, free_port())

    def start_ledger_writer(self) -> None:
        self._start("ledger", "django", "ledger_writer")

    def manage(self, *command: str) -> str:
        """What manage.py prints."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def limits_of(self, tenant: str) -> Iterator[SetLimit]:
        """What was set is taken back."""
        used: set[str] = set()

        def run(kind: str, value: object, *flags: str) -> None:
            used.add(kind)
            self.manage("set_limit", tenant, kind, str(value), *flags)

        yield run
        for kind in used:
            run(kind, "none")

    def start_bulk(self) -> None:
        """For files and batches: the worker and its clock, under their supervisor."""
        script = ROOT / "tests" / "stand_ins" / "bulk_supervisor.py"
        self._start_command("bulk", 0, str(script), str(self.home))

    def kill_bulk(self, word: str) -> None:
        """SIGKILL to a child of the supervisor, known by a word of its command, and to all of its group."""
        group = next(pid for pid in self.bulk_children() if word in _command(pid))
        os.killpg(group, signal.SIGKILL)

    def bulk_children(self) -> list[int]:
        task = Path(f"/proc/{self.processes['bulk'].pid}/task")
        listed = [(thread / "children").read_text() for thread in task.iterdir()]
        return [int(pid) for line in listed for pid in line.split()]

    def start_gateway(self) -> None:
        self.port = self.port or free_port()
        self.start_another_gateway("gateway", self.port)

    def start_another_gateway(self, name: str, port: int) -> None:
        self._start(name, "gateway.server", "--port", str(port))

    def wait_ready(self, ceiling_s: float = 120.0) -> None:
        wait_until(lambda: self.status("/ready") == 200, f"ready ({self.logs()})", ceiling_s)

    def status(self, path: str) -> int | None:
        try:
            with urllib.request.urlopen(self.base_url + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def signal(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self.processes[name].wait(10)

    def stop(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        self.redis.kill()

    def logs(self) -> str:
        return ", ".join(str(path) for path in sorted(self.home.glob("*.log")))

    def _start(self, name: str, module: str, *arguments: str) -> None:
        self._start_command(name, self.nice, "-m", module, *arguments)

    def _start_command(self, name: str, nice: int, *arguments: str) -> None:
        with open(self.home / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                nicely(nice, (sys.executable, *arguments)),
                env=self.environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                preexec_fn=tied(self.is_tied),
            )


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
