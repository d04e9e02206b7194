"""The kernels compiled for lesser CPUs than this one: the same tests, in a process of their own."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from requirements_of_tests import require

HERE = Path(__file__).parent
PROGRAM = """
import sys
import pytest
from inference_engine.execution.attention import build
build.FLAGS = (*build.FLAGS, *sys.argv[1].split())
build.load_kernel()
import torch
assert torch.ops.octavo.has_products() is False
sys.exit(pytest.main(["-q", "-x", "-k", "cpu and not fallback", *sys.argv[2:]]))
"""
FLAGS = {"AVX-512 without bf16": "-march=native -mno-avx512bf16", "AVX2": "-march=x86-64-v3"}
LIMIT_S = 600


@pytest.mark.parametrize("name", FLAGS)
def test_another_instruction_set_passes_the_same_tests(name: str, compiler: Path) -> None:
    require(platform.machine() == "x86_64", "these instruction sets are those of x86-64")
    files = [str(HERE / file) for file in ("test_backends.py", "test_batch_invariance.py")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, FLAGS[name], *files], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
