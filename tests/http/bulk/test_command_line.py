"""octavo-batch as somebody uses it: installed somewhere else, with nothing but Python, a URL and a key."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from batch_client import BatchClient, as_jsonl, chat_line
from octavo_stack import ROOT, Stack


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `pip install .` puts things into; from a copy, since building leaves things behind."""
    folder = tmp_path_factory.mktemp("client")
    source = folder / "source"
    client = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "platform" / "bulk", source / "platform" / "bulk", ignore=client)
    shutil.copy(ROOT / "pyproject.toml", source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--target", folder / "site", source], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(
    installed: Path, stack: Stack, *arguments: object, key: str = "alice"
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(installed),
        "OCTAVO_URL": stack.base_url,
        "OCTAVO_API_KEY": stack.keys.get(key, key),
    }
    command = [sys.executable, "-S", str(installed / "bin" / "octavo-batch"), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_it_runs_a_file_and_brings_back_what_came_out(
    installed: Path, bulk_stack: Stack, alice: BatchClient, tmp_path: Path
) -> None:
    lines = [chat_line(str(n), alice.model, max_tokens=3) for n in range(20)]
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_bytes(as_jsonl([*lines, chat_line("bad", "gpt-99")]))
    done = run(installed, bulk_stack, "run", requests, "--output", answers, "--metadata", "job=night")
    assert done.returncode == 1, "one line failed"
    assert "21/21, 1 failed" in done.stderr
    batch = alice.api.batches.retrieve(done.stdout.strip())
    assert batch.metadata == {"job": "night"}
    answered = [json.loads(line)["custom_id"] for line in answers.read_text().splitlines()]
    assert answered == [line["custom_id"] for line in lines]
    (failed,) = (tmp_path / "answers.jsonl.errors").read_text().splitlines()
    assert json.loads(failed)["custom_id"] == "bad"


def test_a_step_at_a_time(installed: Path, bulk_stack: Stack, alice: BatchClient, tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_bytes(as_jsonl([chat_line("a", alice.model, max_tokens=3)]))
    batch = run(installed, bulk_stack, "submit", requests).stdout.strip()
    assert run(installed, bulk_stack, "watch", batch).returncode == 0
    assert run(installed, bulk_stack, "fetch", batch, "--output", answers).returncode == 0
    assert len(answers.read_text().splitlines()) == 1


def test_what_goes_wrong_is_said_in_a_line(
    installed: Path, bulk_stack: Stack, alice: BatchClient, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_bytes(as_jsonl([chat_line("a", alice.model), chat_line("a", alice.model)]))
    done = run(installed, bulk_stack, "run", wrong, "--output", tmp_path / "out")
    assert done.returncode == 1
    assert "line 2: The custom_id 'a' is that of line 1 already." in done.stderr
    for arguments, words in (
        (("run", tmp_path / "absent", "--output", tmp_path / "out"), "No such file"),
        (("watch", "batch_1"), "No such batch"),
        (("--url", "http://127.0.0.1:1", "submit", wrong), "can't be reached"),
        (("--key", "octavo_a_b", "watch", "batch_1"), "401"),
    ):
        done = run(installed, bulk_stack, *arguments)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_manage_py_has_it_too(bulk_stack: Stack, alice: BatchClient, tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_bytes(as_jsonl([chat_line("a", alice.model, max_tokens=3)]))
    where = ("--url", bulk_stack.base_url, "--key", bulk_stack.keys["alice"])
    bulk_stack.manage("batch", *where, "run", str(requests), "--output", str(answers))
    assert len(answers.read_text().splitlines()) == 1
