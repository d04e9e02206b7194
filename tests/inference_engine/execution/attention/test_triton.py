"""The Triton kernels in Triton's interpreter, which has to be asked for before triton is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

INTERPRETED = Path(__file__).parent / "interpreted"
LIMIT_S = 600


@pytest.mark.timeout(LIMIT_S + 60)
def test_the_triton_backend_passes_its_tests_in_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(INTERPRETED)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
