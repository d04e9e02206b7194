"""Progress: one line a stage on a terminal, few plain lines elsewhere, no fuss when the reader has gone."""

import contextlib
import os
import pty
import subprocess
import sys

import pytest

from operations.terminal import WIDTH, say, stage
from source_tree import ROOT

PROGRAM = """
from operations.terminal import say, stage
with stage("Cooking") as shown:
    for note in ("water", "water", "rice"):
        shown.say(note)
say("served")
"""
TALKATIVE = """
import sys
sys.stderr.write("worked")
for _ in range(3):
    say("x" * 100_000)
sys.stderr.write(" on")
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "platform")}


def test_plain_output_has_a_line_for_begin_and_end(capsys: pytest.CaptureFixture[str]) -> None:
    with stage("Cooking") as shown:
        shown.say("water")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].split() == ["Cooking", "..."]
    assert lines[1].split()[:3] == ["Cooking", "done", "in"]


def test_a_failure_is_shown_and_raised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), stage("Dividing"):
        raise ZeroDivisionError
    assert capsys.readouterr().out.splitlines()[-1].split() == ["Dividing", "failed"]


def test_a_line_never_wraps(capsys: pytest.CaptureFixture[str]) -> None:
    with stage("x" * 200):
        pass
    assert max(map(len, capsys.readouterr().out.splitlines())) == WIDTH


def all_of(master: int) -> str:
    """What a terminal was shown, read to its end, which is an error; it may come in pieces."""
    shown = b""
    with os.fdopen(master, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while piece := terminal.read(65536):
            shown += piece
    return shown.decode()


def test_a_terminal_s_line_is_rewritten_and_only_when_it_changes() -> None:
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", PROGRAM], stdout=slave, env=ENVIRONMENT, check=True)
    os.close(slave)
    shown = all_of(master)
    stages, served, _ = shown.split("\r\n")
    assert served == "served"
    drawn = [part.removeprefix("\x1b[K").split() for part in stages.split("\r")[1:]]
    assert [words[-1] for words in drawn[:3]] == ["...", "water", "rice"]
    assert drawn[3][:2] == ["Cooking", "done"]


def test_a_reader_who_leaves_does_not_stop_the_work() -> None:
    command = [sys.executable, "-c", PROGRAM + TALKATIVE]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read().startswith("worked on")


def test_say_prints_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    say()
    assert capsys.readouterr().out == "hello\n\n"


def test_an_interrupted_stage_has_not_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), stage("Cooking"):
        raise KeyboardInterrupt
    assert capsys.readouterr().out.splitlines()[-1].split() == ["Cooking", "stopped"]
