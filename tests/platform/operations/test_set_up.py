"""Set-up: what is done is not done again, and a command that fails is quoted."""

import sys
from pathlib import Path

import pytest

from operations import set_up
from operations.set_up import SetUpFailed


def test_a_stamp_holds_until_what_it_was_made_from_changes(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert not set_up._is_stamped("kernels", "source", folder)
    set_up._stamp("kernels", "source", folder)
    assert set_up._is_stamped("kernels", "source", folder)
    assert not set_up._is_stamped("kernels", "other source", folder)


def test_lines_come_as_they_are_printed() -> None:
    command = [sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr)"]
    assert sorted(set_up._lines_of("counting", command)) == ["one", "two"]


def test_a_failure_is_told_with_its_last_lines() -> None:
    command = [
        sys.executable,
        "-c",
        "import sys\nfor n in range(40): print('line', n)\nsys.exit('no space left')",
    ]
    with pytest.raises(SetUpFailed, match="counting failed") as failure:
        list(set_up._lines_of("counting", command))
    assert "no space left" in str(failure.value)
    assert "line 3\n" not in str(failure.value)


def test_kernels_are_made_again_when_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = tmp_path / "inference_engine" / "execution" / "kernels"
    execution.mkdir(parents=True)
    (execution / "a.cpp").write_text("int a;")
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    before = set_up._kernel_sources()
    (execution / "a.h").write_text("int b;")
    assert set_up._kernel_sources() != before


def test_a_machine_without_a_compiler_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(set_up, "CACHE", tmp_path)
    set_up.build_kernels()
    assert "batch-invariant" in capsys.readouterr().out
    set_up.build_kernels()
    assert capsys.readouterr().out == ""
