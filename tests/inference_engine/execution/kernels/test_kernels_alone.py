"""The kernels without torch against plain loops, on this machine's instructions and on NEON."""

from pathlib import Path

import pytest

from kernel_program import ARM, HOST, Kind

PARTS = (
    "attention, fp32",
    "attention, bf16",
    "weights in 8 bits",
    "draws",
    "RMS norm",
    "rotary",
    "exp",
    "tanh",
)


def check(kind: Kind, folder: Path) -> None:
    done = kind.run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(part in done.stdout for part in PARTS)


def test_this_machine_s_kernels_agree_with_plain_loops(compiler: Path, tmp_path: Path) -> None:
    assert HOST.missing() == ""
    check(HOST, tmp_path)


@pytest.mark.parametrize("kind", ARM, ids=lambda kind: kind.name)
def test_neon_agrees_with_plain_loops(kind: Kind, tmp_path: Path) -> None:
    if kind.missing():
        pytest.skip(f"NEON can't be run here, nor need it be in CI: {kind.missing()}")
    check(kind, tmp_path)


def test_a_missing_tool_is_named_with_its_package() -> None:
    assert "no-such-compiler is missing" in Kind("x", "no-such-compiler", ()).missing()
    assert Kind("x", "sh", (), ("no-such-qemu",)).missing() == "no-such-qemu is missing (Debian: qemu-user)"
