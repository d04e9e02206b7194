"""Loaded by pytest before Django's settings are: every run has a home of its own and nothing of the caller's.

Kept from the caller: where the model is, the kernel cache (compiling again takes seconds), and OCTAVO_TEST_*.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KEPT = {"OCTAVO_MODEL_DIR", "OCTAVO_CACHE_DIR"}


def _forget_the_caller() -> None:
    for name in list(os.environ):
        if name.startswith("OCTAVO_") and name not in KEPT and not name.startswith("OCTAVO_TEST_"):
            del os.environ[name]
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        os.environ.pop(name, None)


def _settle_in(home: Path) -> None:
    os.environ["OCTAVO_HOME"] = str(home)
    os.environ["REDIS_URL"] = f"unix://{home}/redis.sock"
    os.environ.setdefault("OCTAVO_MODEL_DIR", str(ROOT / "var" / "models" / "smollm2-135m-instruct"))
    os.environ.setdefault("OCTAVO_CACHE_DIR", str(ROOT / "var" / "cache"))


HOME = Path(tempfile.mkdtemp(prefix="octavo-"))
_forget_the_caller()
_settle_in(HOME)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
