from pathlib import Path

import pytest
import torch

from inference_engine.execution.models.numerics import choose_dtype, dtype_name, read_cpu_flags


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ({"avx512f", "avx512_bf16"}, torch.bfloat16),
        ({"amx_bf16"}, torch.bfloat16),
        ({"asimd", "bf16"}, torch.bfloat16),
        ({"avx2", "avx512f"}, torch.float32),
        (set(), torch.float32),
    ],
)
def test_auto_is_bf16_only_where_the_cpu_has_it(flags: set[str], dtype: torch.dtype) -> None:
    assert choose_dtype("auto", frozenset(flags)) is dtype


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_a_setting_forces_either(name: str) -> None:
    assert dtype_name(choose_dtype(name, frozenset())) == name


def test_int8_keeps_bf16_between_its_products() -> None:
    assert choose_dtype("int8", frozenset()) is torch.bfloat16


def test_any_other_setting_is_an_error() -> None:
    with pytest.raises(ValueError, match="float16"):
        choose_dtype("float16")


@pytest.mark.parametrize("line", ["flags\t\t: fpu avx512_bf16", "Features\t: asimd bf16"])
def test_flags_are_read_on_x86_and_on_arm(line: str, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\n{line}\n\nprocessor : 1\n{line} other\n")
    flags = read_cpu_flags(tmp_path / "cpuinfo")
    assert choose_dtype("auto", flags) is torch.bfloat16
    assert "other" not in flags


def test_no_cpuinfo_means_no_flags(tmp_path: Path) -> None:
    assert read_cpu_flags(tmp_path / "absent") == frozenset()
