"""The project's own source files, for the tests of its architecture."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("inference_engine", "platform", "benchmarks")


def python_files() -> list[Path]:
    """Code that ships, migrations left out: they are generated, and nobody edits them."""
    found = [path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    found = [path for path in found if "migrations" not in path.parts and "__pycache__" not in path.parts]
    return sorted([ROOT / "manage.py", *found])


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def decision_lines(start: str) -> list[str]:
    """What follows `start` on lines of docs/decisions that begin with it."""
    lines = (
        line
        for page in sorted((ROOT / "docs/decisions").glob("*.md"))
        for line in page.read_text().splitlines()
    )
    return [line.removeprefix(start).strip() for line in lines if line.startswith(start)]


def run_python(program: str, *paths: Path) -> str:
    """Run `program` in a fresh interpreter with `paths` on its path; its output. Fails with its errors."""
    setting = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", setting + program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
