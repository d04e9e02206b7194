"""What this machine lacks, in plain words. Standard library only: it runs before anything is installed.

    PYTHONPATH=platform python3 -m operations.doctor

Exit status 1 where something is missing without which nothing runs; notes alone leave it 0.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from operations.home import ROOT
from operations.system_packages import family, how_to_get

GIB = 1024**3
NEEDED_MEMORY = 2 * GIB
NEEDED_DISK = 3 * GIB


@dataclass(frozen=True)
class Finding:
    """`level` is ok, note (works, but something is less than it could be) or missing (nothing runs)."""

    level: str
    name: str
    text: str


def ok(name: str, text: str) -> Finding:
    return Finding("ok", name, text)


def note(name: str, text: str) -> Finding:
    return Finding("note", name, text)


def missing(name: str, text: str) -> Finding:
    return Finding("missing", name, text)


def check_python() -> Finding:
    version = platform.python_version()
    if sys.version_info >= (3, 11):
        return ok("python", f"{version} at {sys.executable}")
    get = how_to_get("python", family())
    return missing(
        "python", f"{version} is too old, 3.11 or newer is needed ({get}; or make PYTHON=python3.12)"
    )


def check_venv() -> Finding:
    if (ROOT / ".venv" / "bin" / "python").exists():
        return ok("venv", "the virtual environment .venv is there")
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return ok("venv", "Python can make virtual environments")
    get = how_to_get("venv", family())
    return missing("venv", f"this Python cannot make virtual environments ({get})")


def check_platform() -> Finding:
    system, machine = platform.system(), platform.machine()
    if system == "Linux" and not platform.libc_ver()[0]:
        return missing("system", "a C library other than glibc (musl?): torch has no build for it")
    return ok("system", f"{system} {machine}, {os.cpu_count()} CPUs")


def check_program(name: str, program: str, why: str) -> Finding:
    found = shutil.which(program)
    if found:
        return ok(name, found)
    return note(name, f"{program} is not on PATH: {why} ({how_to_get(name, family())})")


def find_compiler() -> str | None:
    """As the engine looks for it."""
    return shutil.which(os.environ.get("CXX") or "g++")


def check_compiler() -> Finding:
    found = find_compiler()
    if found:
        return ok("compiler", found)
    get = how_to_get("compiler", family())
    text = "no C++ compiler: attention runs on the slower torch path and answers are not batch-invariant"
    return note("compiler", f"{text} ({get})")


def check_redis() -> Finding:
    if os.environ.get("REDIS_URL"):
        return ok("redis", "REDIS_URL is set: that server is used")
    on_path = shutil.which("redis-server")
    if on_path:
        return ok("redis", on_path)
    if platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64"):
        return ok("redis", "not on PATH; set-up brings one inside a Python wheel")
    return missing(
        "redis", f"no redis-server, and no wheel for this system ({how_to_get('redis', family())})"
    )


def check_postgres() -> Finding:
    if shutil.which("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return ok("postgres", "server programs found (the tests use them)")
    get = how_to_get("postgres", family())
    return note("postgres", f"not installed: SQLite serves, and the tests that need PostgreSQL skip ({get})")


def check_memory() -> Finding:
    limit = memory_limit()
    if limit is None:
        return note("memory", "its size could not be read")
    level = ok if limit >= NEEDED_MEMORY else note
    return level("memory", f"{limit / GIB:.1f} GiB allowed, {NEEDED_MEMORY / GIB:.0f} GiB needed")


def memory_limit() -> int | None:
    """Bytes this process may use: the cgroup's limit, or physical memory where there is none."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return physical
    return physical if text == "max" else min(physical, int(text))


def check_disk() -> Finding:
    free = shutil.disk_usage(ROOT).free
    if free >= NEEDED_DISK or (ROOT / ".venv").exists():
        return ok("disk", f"{free / GIB:.1f} GiB free")
    return missing("disk", f"{free / GIB:.1f} GiB free, set-up needs about {NEEDED_DISK / GIB:.0f} GiB")


def check_writable() -> Finding:
    if os.access(ROOT, os.W_OK):
        return ok("folder", f"{ROOT} is writable")
    return missing("folder", f"{ROOT} is not writable: .venv and var live there")


def check_cpu() -> Finding:
    flags = cpu_flags()
    if flags & {"avx512_bf16", "amx_bf16", "bf16"}:
        return ok("cpu", "computes in bf16")
    return note("cpu", "has no bf16 instructions: the model runs in fp32, slower and with twice the memory")


def cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    described = (line for line in lines if line.startswith(("flags", "Features")))
    return set(next(described, ":").split(":", 1)[1].split())


def check_gpu() -> Finding:
    if has_nvidia_gpu():
        return ok("gpu", "an NVIDIA GPU is here (this version computes on the CPU)")
    return ok("gpu", "none: the engine computes on the CPU, and torch should be a CPU build")


def has_nvidia_gpu() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidia0").exists()


def check_port() -> Finding:
    text = os.environ.get("OCTAVO_PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        return missing("port", f"OCTAVO_PORT is {text!r}, not a port number")
    port = int(text)
    if port_is_free(port):
        return ok("port", f"{port} is free")
    return note("port", f"{port} is in use: stop what listens there (Octavo itself?) or set OCTAVO_PORT")


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def checks() -> Iterator[Callable[[], Finding]]:
    yield from (check_python, check_venv, check_platform, check_writable)
    yield from (check_memory, check_disk, check_cpu, check_gpu)
    yield lambda: check_program("make", "make", "the commands of the Makefile need it")
    yield lambda: check_program("git", "git", "updating a clone needs it")
    yield from (check_compiler, check_redis, check_postgres)
    yield lambda: check_program("browser", "chromium", "only tests of the console need it")
    yield check_port


def main() -> int:
    findings = [check() for check in checks()]
    for finding in findings:
        print(f"  {finding.level:<8} {finding.name:<10} {finding.text}")
    num_missing = sum(finding.level == "missing" for finding in findings)
    if num_missing:
        print(f"\n{num_missing} thing(s) above must be there before `make up` can work.")
    return 1 if num_missing else 0


if __name__ == "__main__":
    sys.exit(main())
