"""The other end of trial.py: one process, started when it is first needed and again should it die."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from inference_engine.contract.codes import Code

from .errors import ConstraintError
from .vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[2]


class TrialProcess:
    """Not thread-safe. The process ends when its input is closed, so it doesn't outlive this one."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Raises ConstraintError where no process can be started."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = _start()
        opening = {
            "tokenizer_json": self._vocabulary.tokenizer_json.decode(),
            "vocab_size": self._vocabulary.size,
            "end_ids": sorted(self._vocabulary.end_ids),
        }
        self._ask(self._process, opening)

    def check(self, grammar: str) -> None:
        """Blocks for at most TRIAL_SECONDS, and the start where one is due. Raises ConstraintError."""
        self.start()
        assert self._process is not None
        error = self._ask(self._process, {"grammar": grammar})
        if error is not None:
            raise ConstraintError(error)

    def close(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process = None

    def _ask(self, process: "subprocess.Popen[str]", question: dict[str, Any]) -> str | None:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise ConstraintError("the grammar compiler has died", code=Code.INTERNAL_ERROR)
        error = json.loads(answer)["error"]
        return None if error is None else str(error)


def _start() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "inference_engine.constraints.trial"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
