"""Compile the C++ kernels with the system's compiler, once for each source, compiler, torch and kind of CPU.

The file name in the cache carries a hash of all of these, so a stale kernel is never loaded; it appears by an
atomic rename, so processes may build at the same time. Needs neither Python.h nor ninja.
"""

import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

logger = logging.getLogger(__name__)

SOURCES = Path(__file__).parents[1] / "kernels"
"""A folder: every .cpp in it becomes part of the one library."""
TORCH = Path(torch.__file__).parent
FLAGS = ("-std=c++20", "-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-fopenmp", "-Wno-psabi")
BUILD_LIMIT_S = 600


class KernelBuildError(RuntimeError):
    """The kernel can't be compiled or loaded. The message says why; the compiler's own words are in `log`."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}: {log.strip()[-2000:]}" if log else message)
        self.log = log


@functools.cache
def load_kernel() -> Path:
    """Make torch.ops.octavo available; returns the library's path. Raises KernelBuildError."""
    library = build_kernel(cache_folder())
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise KernelBuildError("the compiled attention kernel does not load", str(error)) from error
    return library


def cache_folder() -> Path:
    """OCTAVO_CACHE_DIR, else cache/ under OCTAVO_HOME, else var/cache under the working directory."""
    home = Path(os.environ.get("OCTAVO_HOME") or "var")
    return Path(os.environ.get("OCTAVO_CACHE_DIR") or home / "cache").absolute() / "kernels"


def find_compiler() -> str | None:
    """Path of $CXX or g++; None where there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def build_kernel(folder: Path) -> Path:
    """The compiled kernel in `folder`, built now if it is not there yet. Raises KernelBuildError."""
    compiler = find_compiler()
    if compiler is None:
        raise KernelBuildError("no C++ compiler: neither CXX nor g++ names one")
    library = folder / f"attention-{_fingerprint(compiler)}.so"
    if not library.exists():
        started_at = time.monotonic()
        _build(compiler, library)
        logger.info("compiled the attention kernel in %.1f s", time.monotonic() - started_at)
    return library


def _build(compiler: str, library: Path) -> None:
    """Compile and link beside the target, then rename."""
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            linked = Path(scratch, "kernel.so")
            with ThreadPoolExecutor() as pool:
                sources = sorted(SOURCES.glob("*.cpp"))
                objects = list(pool.map(lambda source: _compile(compiler, source, Path(scratch)), sources))
            # Linked without -fopenmp: the OpenMP runtime must be the very one that torch has loaded.
            libraries = (f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-lc10")
            _run(compiler, "-shared", *objects, *libraries, "-o", str(linked))
            linked.replace(library)
    except OSError as error:
        raise KernelBuildError(f"can't build the attention kernel in {library.parent}", str(error)) from error


def _compile(compiler: str, source: Path, folder: Path) -> str:
    """Path of the object file."""
    compiled = str(folder / f"{source.stem}.o")
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    include = ("-isystem", str(TORCH / "include"))
    _run(compiler, *FLAGS, abi, *include, "-c", str(source), "-o", compiled)
    return compiled


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise KernelBuildError(f"the C++ compiler took over {BUILD_LIMIT_S} s") from error
    if done.returncode:
        raise KernelBuildError("the C++ compiler failed", done.stderr)


def _fingerprint(compiler: str) -> str:
    """Hash over all that decides what the compiler makes of the source, and whether it may run here."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    texts = [path.name + "\0" + path.read_text() for path in sorted(SOURCES.iterdir()) if path.is_file()]
    parts = [*texts, *FLAGS, version.stdout, torch.__version__, platform.machine(), _cpu_flags()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _cpu_flags() -> str:
    """The first processor's model and feature lines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(
        line for line in lines if line.lower().startswith(("flags", "features", "model name", "cpu part"))
    )
