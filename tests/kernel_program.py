"""The kernels by themselves, without torch, over random shapes: `python -m kernel_program` in tests/.

The host's build runs as it is, those for Arm's NEON in qemu's emulation of a CPU: one with bf16 dot products,
one with none of the later extensions.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "inference_engine" / "execution" / "kernels"
PROGRAM = ROOT / "tests" / "inference_engine" / "execution" / "kernels" / "check_kernels.cpp"
WITHOUT_TORCH = ("paged_attention", "products", "int8_products", "sampling")
FLAGS = ("-std=c++20", "-O2", "-ffp-contract=fast", "-pthread", "-Wno-psabi")
LIMIT_S = 250
CROSS_COMPILER = "aarch64-linux-gnu-g++"


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to compile the kernels, and what runs the result."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    runner: tuple[str, ...] = ()

    def missing(self) -> str:
        """What this machine lacks for it, in words; empty if nothing."""
        if not shutil.which(self.compiler):
            package = "g++-aarch64-linux-gnu" if self.runner else "g++"
            return f"{self.compiler} is missing (Debian: {package})"
        if self.runner and not shutil.which(self.runner[0]):
            return f"{self.runner[0]} is missing (Debian: qemu-user)"
        return ""

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Build in `folder` and run: what it printed, 0 where all is right. Raises where the build fails."""
        program = folder / self.name
        sources = [str(KERNELS / f"{name}.cpp") for name in WITHOUT_TORCH]
        command = [
            self.compiler,
            *FLAGS,
            *self.flags,
            f"-I{KERNELS}",
            *sources,
            str(PROGRAM),
            "-o",
            str(program),
        ]
        subprocess.run(command, check=True, timeout=LIMIT_S)
        return subprocess.run([*self.runner, str(program)], capture_output=True, text=True, timeout=LIMIT_S)


def on_arm(instructions: str) -> Kind:
    return Kind(
        instructions, CROSS_COMPILER, (f"-march={instructions}", "-static"), ("qemu-aarch64", "-cpu", "max")
    )


HOST = Kind("host", os.environ.get("CXX", "g++"), ("-march=native",))
ARM = (on_arm("armv8.6-a+bf16"), on_arm("armv8-a"))


def main() -> int:
    """0 where every kind ran and is right, 1 where one is wrong, 2 where one could not be run."""
    worst = 0
    for kind in (HOST, *ARM):
        print(f"== {kind.name}")
        if kind.missing():
            print(f"not run: {kind.missing()}")
            worst = max(worst, 2)
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = kind.run(Path(folder))
        print(done.stdout + done.stderr, end="")
        if done.returncode:
            print(f"{kind.name} is wrong (exit {done.returncode})")
            worst = max(worst, 1)
    return worst


if __name__ == "__main__":
    sys.exit(main())
