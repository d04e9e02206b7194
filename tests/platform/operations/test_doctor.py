"""The doctor runs on the standard library and names the package that brings what is missing."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from operations import doctor, system_packages
from source_tree import ROOT


def run_doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": str(ROOT / "platform"), "PATH": os.environ["PATH"], **environment}
    command = [sys.executable, "-S", "-m", "operations.doctor"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_it_runs_before_anything_is_installed() -> None:
    done = run_doctor()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python" in done.stdout


def test_an_empty_path_is_answered_with_packages_and_still_no_failure(tmp_path: Path) -> None:
    done = run_doctor(PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout
    line = next(line for line in done.stdout.splitlines() if " compiler " in line)
    assert "note" in line
    assert "batch-invariant" in line
    assert "g++" in line


def test_a_wrong_port_is_a_failure() -> None:
    done = run_doctor(OCTAVO_PORT="eight thousand")
    assert done.returncode == 1
    assert "eight thousand" in done.stdout


def test_a_busy_port_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("OCTAVO_PORT", str(port))
        assert doctor.check_port().level == "note"
    assert doctor.check_port().level == "ok"


@pytest.mark.parametrize(
    ("release", "family"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=alpine\n", "alpine"),
        ("ID=manjaro\nID_LIKE=arch\n", "arch"),
        ("ID=plan9\n", None),
    ],
)
def test_systems_are_known_by_their_release_file(release: str, family: str | None, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text(release)
    assert system_packages.family(tmp_path / "os-release") == family


def test_an_unknown_system_gets_every_name() -> None:
    answer = system_packages.how_to_get("compiler", None)
    assert "g++ (debian)" in answer
    assert "gcc-c++ (fedora)" in answer
    assert system_packages.how_to_get("venv", "debian") == "apt-get install python3-venv"
