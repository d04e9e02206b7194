"""Building the kernel, with a stand-in for the compiler where the real one would only cost time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inference_engine.execution.attention import build
from inference_engine.execution.attention.build import KernelBuildError, build_kernel, load_kernel
from inference_engine.execution.attention.select import choose_backend

COMPILER = """#!/bin/sh
[ "$1" = --version ] && { echo stand-in 1.0; exit; }
echo run >> "$(dirname "$0")/runs"
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo complete > "$2"; shift; done
"""
BROKEN = """#!/bin/sh
[ "$1" = --version ] && { echo broken 1.0; exit; }
echo "kernel.cpp:1: no such luck" >&2
exit 1
"""


@pytest.fixture
def _fresh_load() -> Iterator[None]:
    load_kernel.cache_clear()
    yield
    load_kernel.cache_clear()


def use_compiler(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    compiler = folder / "stand-in-compiler"
    compiler.write_text(script)
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return compiler


def test_a_kernel_is_built_once_and_leaves_nothing_else_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, COMPILER, monkeypatch)
    library = build_kernel(tmp_path / "kernels")
    assert library.read_text() == "complete\n"
    runs = (tmp_path / "runs").read_text()
    assert build_kernel(tmp_path / "kernels") == library
    assert (tmp_path / "runs").read_text() == runs
    assert list((tmp_path / "kernels").iterdir()) == [library]


def test_builders_at_the_same_time_all_get_a_complete_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, COMPILER, monkeypatch)
    built: list[str] = []
    builders = [
        threading.Thread(target=lambda: built.append(build_kernel(tmp_path / "kernels").read_text()))
        for _ in range(4)
    ]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    assert built == ["complete\n"] * 4
    assert len(list((tmp_path / "kernels").iterdir())) == 1


def test_another_source_flags_or_compiler_is_another_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, COMPILER, monkeypatch)
    names = {build_kernel(tmp_path / "kernels").name}
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-g"))
    names.add(build_kernel(tmp_path / "kernels").name)
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "other.cpp").write_text("// another")
    monkeypatch.setattr(build, "SOURCES", sources)
    names.add(build_kernel(tmp_path / "kernels").name)
    use_compiler(tmp_path, COMPILER.replace("1.0", "2.0"), monkeypatch)
    names.add(build_kernel(tmp_path / "kernels").name)
    assert len(names) == 4


def test_a_failed_compile_says_what_the_compiler_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, BROKEN, monkeypatch)
    with pytest.raises(KernelBuildError, match="no such luck") as raised:
        build_kernel(tmp_path / "kernels")
    assert "kernel.cpp:1" in raised.value.log
    assert not list((tmp_path / "kernels").iterdir())


def test_a_cache_that_can_not_be_written_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, COMPILER, monkeypatch)
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelBuildError, match="can't build"):
        build_kernel(tmp_path / "file" / "kernels")


@pytest.mark.usefixtures("_fresh_load")
def test_a_library_that_does_not_load_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, COMPILER, monkeypatch)
    monkeypatch.setenv("OCTAVO_CACHE_DIR", str(tmp_path))
    with pytest.raises(KernelBuildError, match="does not load"):
        load_kernel()


@pytest.mark.usefixtures("_fresh_load")
def test_without_a_compiler_torch_serves_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    backend = choose_backend("auto")
    assert (backend.name, backend.batch_invariant) == ("cpu-fallback", False)
    assert "no C++ compiler" in caplog.text and "not batch-invariant" in caplog.text
    with pytest.raises(KernelBuildError, match="no C\\+\\+ compiler"):
        choose_backend("cpu")


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'tpu': auto, cpu, cpu-fallback, reference, triton"):
        choose_backend("tpu")


def test_a_backend_of_another_device_is_refused() -> None:
    gpu = torch.device("cuda")
    with pytest.raises(ValueError, match="cpu attention backend does not run on a GPU"):
        choose_backend("cpu", gpu)
    with pytest.raises(ValueError, match="needs a GPU"):
        choose_backend("triton", torch.device("cpu"))
    with pytest.raises(ValueError, match="only the triton attention backend splits"):
        choose_backend("cpu", split_kv=True)
