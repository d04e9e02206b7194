"""The check of a GPU, here without one: what it says, and all of it in miniature in Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_check.py"
WITHOUT_LIBRARIES = """
import importlib.abc, importlib.util, runpy, sys
ABSENT = ("msgspec", "llguidance")
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(name)
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ABSENT else find_spec(name, *rest)
sys.meta_path.insert(0, Absent())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LIMIT_S = 300


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S
    )


def test_without_a_gpu_it_says_so_and_fails(tmp_path: Path) -> None:
    done = run(str(SCRIPT), folder=tmp_path)
    assert done.returncode == 2
    assert f"there is no GPU here that torch {torch.__version__} can use" in done.stderr
    assert not list(tmp_path.iterdir())


def test_all_of_it_runs_in_miniature_with_only_what_it_needs(tmp_path: Path) -> None:
    done = run("-c", WITHOUT_LIBRARIES, str(SCRIPT), "--dry-run", "--output", "figures.json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["stood_in_for"] == ["msgspec", "llguidance"]
    assert figures["passed"] and len(figures["kernels"]) == 8
    (model,) = figures["models"]
    assert model["logits_error"] < 0.05
    assert [each["equal_tokens"] for each in model["decode"]] == [1.0, 1.0]
    assert json.loads(done.stdout.splitlines()[-1])["passed"] is True


def test_a_wrong_kernel_is_reported() -> None:
    program = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, sys.argv[1])
import torch
from benchmarks.gpu.kernel_checks import Case, check_kernels
from inference_engine.execution.attention.triton import TritonBackend
attend = TritonBackend._attend
TritonBackend._attend = lambda self, *rest: attend(self, *rest) * 1.1
reports = check_kernels(torch.device("cpu"), [1, 5], [Case(2, 1, 16)])
assert not any(report["passed"] for report in reports), reports
"""
    done = run("-c", program, str(ROOT), folder=ROOT)
    assert done.returncode == 0, done.stderr
