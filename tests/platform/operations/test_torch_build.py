"""Which torch build pip offers, and when it is refused. Reports have the shape of pip's own, version 1."""

from pathlib import Path
from typing import Any

import pytest

from operations.torch_build import TorchBuild, TorchRefused, decide, from_report, look, size_text

LINUX = {"platform_system": "Linux", "platform_machine": "x86_64", "sys_platform": "linux"}
CUDA_LINES = [
    "filelock",
    'setuptools; python_version >= "3.12"',
    'nvidia-cublas==13.0.0.19; platform_system == "Linux" and platform_machine == "x86_64"',
    'nvidia-cudnn-cu13==9.13.0.50 ; platform_system == "Linux"',
    'cuda-bindings<14,>=13.0.3; platform_system == "Linux"',
    'triton==3.6.0; platform_system == "Linux"',
    'opt-einsum>=3.3; extra == "opt-einsum"',
]


def report(
    version: str, requires: list[str], environment: dict[str, str], url: str = "file:///w/t.whl"
) -> dict[str, Any]:
    chosen = {"metadata": {"version": version, "requires_dist": requires}, "download_info": {"url": url}}
    return {"version": "1", "install": [chosen], "environment": environment}


def test_a_cpu_build_is_taken() -> None:
    build = from_report(report("2.13.0+cpu", ["filelock", "setuptools"], LINUX))
    assert not build.is_cuda
    decide(build, has_gpu=False, wish="")


def test_a_cuda_build_is_known_by_what_it_brings() -> None:
    build = from_report(report("2.13.0", CUDA_LINES, LINUX))
    assert build.is_cuda
    assert build.cuda_packages == ("nvidia-cublas", "nvidia-cudnn-cu13", "cuda-bindings", "triton")


def test_the_same_lines_bring_nothing_on_a_mac() -> None:
    mac = {"platform_system": "Darwin", "platform_machine": "arm64", "sys_platform": "darwin"}
    assert not from_report(report("2.13.0", CUDA_LINES, mac)).is_cuda


def test_a_cuda_build_without_a_gpu_is_refused_with_its_size_and_the_settings(tmp_path: Path) -> None:
    wheel = tmp_path / "torch.whl"
    with open(wheel, "wb") as file:
        file.truncate(512 * 1024 * 1024)
    build = from_report(report("2.13.0", CUDA_LINES, LINUX, wheel.as_uri()))
    with pytest.raises(TorchRefused) as refusal:
        decide(build, has_gpu=False, wish="")
    for told in ("512 MiB", "4 CUDA packages", "PIP_INDEX_URL", "PIP_FIND_LINKS", "OCTAVO_TORCH=cuda"):
        assert told in str(refusal.value)


@pytest.mark.parametrize(("has_gpu", "wish"), [(True, ""), (False, "cuda")])
def test_a_cuda_build_is_taken_with_a_gpu_or_when_asked_for(has_gpu: bool, wish: str) -> None:
    decide(TorchBuild("2.13.0", "file:///none", ("nvidia-cublas",)), has_gpu=has_gpu, wish=wish)


def test_an_unknown_wish_is_named() -> None:
    with pytest.raises(TorchRefused, match="'rocm'"):
        decide(TorchBuild("2.13.0+cpu", "", ()), has_gpu=False, wish="rocm")


def test_a_size_that_nobody_tells_is_unknown() -> None:
    assert size_text("file:///no/such/file.whl") == "of unknown size"


def test_pip_is_asked_without_fetching(tmp_path: Path) -> None:
    with pytest.raises(TorchRefused, match="pip finds no"):
        look(Path("python3"), f"no-such-package-at-all @ file://{tmp_path}/none.whl")
