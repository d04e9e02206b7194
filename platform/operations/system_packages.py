"""Which package of which system brings a program. Only the names: installing is the reader's choice."""

from __future__ import annotations

import sys
from pathlib import Path

FAMILIES = ("debian", "fedora", "alpine", "arch", "macos")

INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "alpine": "apk add",
    "arch": "pacman -S",
    "macos": "brew install",
}

# Columns in the order of FAMILIES.
_TABLE = {
    "python": ("python3", "python3", "python3", "python", "python@3.12"),
    "venv": ("python3-venv", "python3", "python3", "python", "python@3.12"),
    "make": ("make", "make", "make", "make", "make"),
    "git": ("git", "git", "git", "git", "git"),
    "compiler": ("g++", "gcc-c++", "g++", "gcc", "gcc"),
    "redis": ("redis-server", "redis", "redis", "valkey", "redis"),
    "postgres": ("postgresql", "postgresql-server", "postgresql", "postgresql", "postgresql"),
    "browser": ("chromium", "chromium", "chromium", "chromium", "chromium"),
}


def family(os_release: Path = Path("/etc/os-release")) -> str | None:
    """One of FAMILIES, or None for a system this table does not know."""
    if sys.platform == "darwin":
        return "macos"
    try:
        pairs = [line.partition("=") for line in os_release.read_text().splitlines()]
    except OSError:
        return None
    fields = {key: value.strip('"') for key, _, value in pairs}
    words = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".split()
    renamed = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora"}
    return next((known for word in words if (known := renamed.get(word, word)) in FAMILIES), None)


def how_to_get(thing: str, system: str | None) -> str:
    """`apt-get install g++`, or the names on every known system where this one is unknown."""
    names = dict(zip(FAMILIES, _TABLE[thing]))  # noqa: B905 (an old Python must get this far)
    if system:
        return f"{INSTALL[system]} {names[system]}"
    return "package " + ", ".join(f"{name} ({where})" for where, name in names.items())
