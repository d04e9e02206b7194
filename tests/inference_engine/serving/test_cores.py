"""Cores of the machine, or of the container's quota."""

import os
from pathlib import Path

import pytest

from inference_engine.serving.cores import available_cores

SCHEDULABLE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000", SCHEDULABLE),
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("10000000 100000", SCHEDULABLE),
        ("nonsense", SCHEDULABLE),
    ],
)
def test_a_quota_lowers_the_number_but_never_to_none(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert available_cores(tmp_path / "cpu.max") == expected


def test_without_a_quota_file_all_schedulable_cores_count(tmp_path: Path) -> None:
    assert available_cores(tmp_path / "absent") == SCHEDULABLE
