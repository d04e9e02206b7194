"""Real servers that tests start for themselves: Redis and PostgreSQL, each on a unix socket of its own."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psutil
import psycopg
import redis

from operations.child_process import die_with
from operations.redis_server import redis_command

START_CEILING_S = 60


def wait_until(question: Callable[[], bool], what: str, ceiling_s: float = START_CEILING_S) -> None:
    """Poll until `question` answers yes; fail loudly at the ceiling."""
    give_up_at = time.monotonic() + ceiling_s
    while not question():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{what} within {ceiling_s} s")
        time.sleep(0.02)


def free_port() -> int:
    """Below those that outgoing connections are given: one of them might take it before it is bound."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def nicely(nice: int, command: Sequence[str]) -> list[str]:
    """The command under that many levels more of niceness."""
    return ["nice", "-n", str(nice), *command] if nice else list(command)


def tied(is_tied: bool) -> Callable[[], None] | None:
    """For `preexec_fn` of Popen: killed once the thread that started it ends, however that comes about."""
    return partial(die_with, os.getpid()) if is_tied else None


class RedisServer:
    """One redis-server. `kill`, `pause` and `restart` are for fault tests; `url` stays the same."""

    def __init__(
        self, binary: Path, folder: Path, *, durable: bool = False, nice: int = 0, is_tied: bool = False
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._command = nicely(nice, redis_command(binary, self.socket, folder, durable=durable))
        self._is_tied = is_tied
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=tied(self._is_tied),
        )
        wait_until(self.answers, "redis-server answers")

    def answers(self) -> bool:
        try:
            with contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=1)) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """SIGKILL: nothing is written any more."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.kill()
        self.start()

    def pause(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self.resume()
        self._process.send_signal(how)
        self._process.wait(START_CEILING_S)
        self._process = None


def find_postgres() -> Path | None:
    """The folder that holds both `initdb` and `postgres`."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((c for c in candidates if (c / "initdb").is_file() and (c / "postgres").is_file()), None)


class PostgresCluster:
    """A cluster in a folder of its own. PostgreSQL refuses to run as root, so root lends it to a user."""

    def __init__(self, programs: Path, folder: Path, *, is_tied: bool = False) -> None:
        self._programs, self._folder, self._is_tied = programs, folder, is_tied
        self._user = _unprivileged_user() if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgres://octavo@/postgres?host={folder}"

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        data = self._folder / "data"
        init = [
            self._programs / "initdb",
            "-D",
            data,
            "-U",
            "octavo",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(init, check=True, capture_output=True, user=self._user, cwd=self._folder)
        self.serve()

    def serve(self) -> None:
        """Also again, after `kill`."""
        serve = [self._programs / "postgres", "-D", self._folder / "data", "-h", "", "-k", self._folder]
        options = ["-c", "fsync=off", "-c", "max_connections=60"]
        self._process = subprocess.Popen(
            [*serve, *options],
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=tied(self._is_tied),
        )
        wait_until(self._accepts, "PostgreSQL accepts connections")

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_CEILING_S)

    def kill(self) -> None:
        """SIGKILL of the server and its children: all that it knows is what its files say."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children()
        for process in [self._process, *children]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(START_CEILING_S)
        psutil.wait_procs(children, START_CEILING_S)


def _unprivileged_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
