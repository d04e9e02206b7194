from pathlib import Path
from typing import Any

import pytest

from inference_engine.execution.models.fingerprint import numerics_fingerprint, source_hash

FACTS: dict[str, Any] = {
    "revision": "r",
    "config": {"rope_theta": 1.0, "_name_or_path": "here"},
    "dtype": "bfloat16",
    "backend": "cpu",
    "threads": 2,
    "min_rows": {},
}


def test_equal_facts_give_equal_fingerprints_wherever_the_model_lies() -> None:
    moved = {**FACTS, "config": {"_name_or_path": "there", "rope_theta": 1.0}}
    assert numerics_fingerprint(**FACTS) == numerics_fingerprint(**moved)


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "s"},
        {"config": {"rope_theta": 2.0}},
        {"dtype": "float32"},
        {"backend": "reference"},
        {"threads": 1},
        {"min_rows": {"PackedLinear 2x3": 4}},
    ],
)
def test_whatever_may_change_a_bit_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert numerics_fingerprint(**FACTS) != numerics_fingerprint(**{**FACTS, **change})


def test_another_line_of_kernel_source_is_another_hash(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text("a")
    (tmp_path / "notes.txt").write_text("x")
    before = source_hash(tmp_path)
    (tmp_path / "notes.txt").write_text("y")
    assert source_hash(tmp_path) == before
    (tmp_path / "kernel.cpp").write_text("b")
    assert source_hash(tmp_path) != before
