import os
import subprocess
import sys

from inference_engine.execution.environment import prepare_environment


def test_libraries_are_told_before_they_load() -> None:
    environ: dict[str, str] = {"OMP_NUM_THREADS": "64"}
    prepare_environment(2, environ)
    assert environ["OMP_NUM_THREADS"] == "2"
    assert int(environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024
    assert environ["HF_HUB_OFFLINE"] == "1"


def test_what_the_operator_set_stays() -> None:
    environ = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "77", "GOMP_SPINCOUNT": "5"}
    prepare_environment(1, environ)
    assert environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "77"
    assert environ["GOMP_SPINCOUNT"] == "5"


def test_torch_starts_with_the_threads_asked_for_and_is_not_imported_before() -> None:
    program = (
        "import sys, inference_engine.execution.environment as environment;"
        "assert 'torch' not in sys.modules;"
        "environment.prepare_environment(1);"
        "import torch; print(torch.get_num_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout.strip() == "1"
