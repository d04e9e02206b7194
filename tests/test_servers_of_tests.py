"""The fixtures themselves."""

import subprocess
from pathlib import Path

import psycopg
import pytest

from requirements_of_tests import require


def test_postgres_answers(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_compiler_compiles(compiler: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("int main() { return 0; }\n")
    subprocess.run([compiler, source, "-o", tmp_path / "a"], check=True)
    subprocess.run([tmp_path / "a"], check=True)


def test_absent_requirement_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        require(None, "no such thing")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such thing"):
        require(None, "no such thing")
