"""Which build of torch pip would fetch here, and whether to take it.

The same line, `torch==...`, is a CPU build where the package index at hand offers one and elsewhere a CUDA
build with gigabytes of libraries. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUDA_PACKAGE = re.compile(r"(nvidia|cuda|triton)\b", re.IGNORECASE)
MIB = 1024 * 1024


class TorchRefused(Exception):
    """What pip offers is not what this machine wants; the message says what to set."""


@dataclass(frozen=True)
class TorchBuild:
    version: str
    url: str
    cuda_packages: tuple[str, ...]
    """Names of the CUDA libraries it would bring on this machine; empty for a CPU build."""

    @property
    def is_cuda(self) -> bool:
        return bool(self.cuda_packages) and "+cpu" not in self.version


def look(python: Path, requirement: str) -> TorchBuild:
    """Ask pip what it would fetch, fetching nothing but metadata."""
    asked = [str(python), "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "-q"]
    answer = subprocess.run(
        [*asked, "--report", "-", requirement], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise TorchRefused(f"pip finds no {requirement} for this Python:\n{answer.stderr.strip()}")
    return from_report(json.loads(answer.stdout))


def from_report(report: dict[str, Any]) -> TorchBuild:
    """From pip's installation report, version 1."""
    chosen = report["install"][0]
    metadata, environment = chosen["metadata"], report["environment"]
    needed = [line for line in metadata.get("requires_dist", []) if _applies(line, environment)]
    cuda = tuple(
        re.split(r"[ =<>!~;\[(]", line, maxsplit=1)[0] for line in needed if CUDA_PACKAGE.match(line)
    )
    return TorchBuild(metadata["version"], chosen["download_info"]["url"], cuda)


def _applies(requirement: str, environment: dict[str, str]) -> bool:
    """Whether the platform parts of a requirement's marker hold here (extras never do)."""
    marker = requirement.partition(";")[2]
    if "extra" in marker:
        return False
    compared = re.findall(r"(platform_system|platform_machine|sys_platform)\s*==\s*['\"](\w+)['\"]", marker)
    return all(environment.get(name) == value for name, value in compared)


def decide(build: TorchBuild, *, has_gpu: bool, wish: str) -> None:
    """Raises TorchRefused for a CUDA build that nobody asked for. `wish` is OCTAVO_TORCH."""
    if wish not in ("", "cuda"):
        raise TorchRefused(f"OCTAVO_TORCH is {wish!r}; the only value it knows is cuda")
    if not build.is_cuda or has_gpu or wish == "cuda":
        return
    raise TorchRefused(
        f"pip would fetch a CUDA build of torch {build.version} ({size_text(build.url)}) and "
        f"{len(build.cuda_packages)} CUDA packages of several GiB more, and this machine has no NVIDIA GPU.\n"
        "Either point pip at an index or a folder that has the CPU build\n"
        "  (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, then `make up` again),\n"
        "or take the CUDA build all the same:\n"
        "  OCTAVO_TORCH=cuda make up"
    )


def size_text(url: str) -> str:
    size = _size(url)
    return f"{size / MIB:.0f} MiB" if size else "of unknown size"


def _size(url: str) -> int | None:
    parts = urllib.parse.urlsplit(url)
    try:
        if parts.scheme == "file":
            return os.stat(urllib.request.url2pathname(parts.path)).st_size
        head = urllib.request.Request(url, method="HEAD")  # noqa: S310 (the address pip itself would open)
        with urllib.request.urlopen(head, timeout=10) as answer:  # noqa: S310
            return int(answer.headers["Content-Length"])
    except (OSError, ValueError, TypeError):
        return None
