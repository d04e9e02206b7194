"""Where an installation keeps what it makes, and the environment that every one of its processes gets."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_SOCKET_PATH_BYTES = 100
"""The kernel allows 108 with the final zero; a server may add a few while it binds."""
LONGEST_SOCKET_NAME = "engine-00.sock"


class HomeInUse(Exception):
    """Another supervisor runs on this home."""


@dataclass(frozen=True)
class Home:
    """`path` is var/ of the clone, or OCTAVO_HOME."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def redis_data(self) -> Path:
        return self.path / "redis"

    @property
    def sockets(self) -> Path:
        """`run` in the home, or a short folder of this user's where socket paths would be too long."""
        usual = self.path / "run"
        if len(os.fsencode(usual / LONGEST_SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES:
            return usual
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"octavo-{os.geteuid()}-{digest}"

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def model_dir(self) -> Path:
        return self.path / "models" / "smollm2-135m-instruct"

    def make_folders(self) -> None:
        for folder in (self.path, self.logs, self.redis_data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(self.sockets)

    def lock(self) -> int:
        """Held until this process ends, however it ends. Raises HomeInUse with the holder's process id."""
        descriptor = os.open(self.path / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            raise HomeInUse(f"Octavo already runs on {self.path} (process {holder})") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor


def make_private(folder: Path) -> None:
    """Mode 0700 and ours: a socket in it is reachable by this user alone. Raises PermissionError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    folder.chmod(0o700)


def home_from(environment: Mapping[str, str]) -> Home:
    return Home(Path(environment.get("OCTAVO_HOME") or ROOT / "var").absolute())


POOL_BYTES = str(1 << 30)
"""Of KV for an engine that shares its machine with everything else, unless told otherwise: its pages are all
written before it is ready, and that takes longer than the rest of its start where there is much memory."""


def process_environment(home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    """What every child gets: the caller's variables, and where this home's Redis, model and caches are."""
    redis_url = environment.get("OCTAVO_REDIS_URL") or environment.get("REDIS_URL")
    pool = {} if "OCTAVO_NUM_BLOCKS" in environment else {"OCTAVO_KV_BYTES": POOL_BYTES}
    return {
        **pool,
        **environment,
        "OCTAVO_HOME": str(home.path),
        "OCTAVO_MODEL_DIR": environment.get("OCTAVO_MODEL_DIR") or str(home.model_dir),
        "OCTAVO_CACHE_DIR": environment.get("OCTAVO_CACHE_DIR") or str(home.path / "cache"),
        "OCTAVO_REDIS_URL": redis_url or f"unix://{home.redis_socket}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
    }
