"""The other end of trial.py: one process, started when it is first needed and again should it die."""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from inference_engine.contract.codes import Code

from .errors import ConstraintError
from .vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
"""A second on a quiet machine; beside others that compute, many."""
ANSWER_SECONDS = 10.0
"""Silent for longer, it is dead: a trial ends by itself long before."""


class TrialLost(ConstraintError):
    def __init__(self) -> None:
        super().__init__("the grammar compiler has died", code=Code.INTERNAL_ERROR)


class TrialProcess:
    """Not thread-safe. The process ends when its input is closed, so it doesn't outlive this one."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Raises TrialLost where no process can be started."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = _start()
        opening = {
            "tokenizer_json": self._vocabulary.tokenizer_json.decode(),
            "vocab_size": self._vocabulary.size,
            "end_ids": sorted(self._vocabulary.end_ids),
        }
        self._ask(opening, START_SECONDS)

    def check(self, grammar: str) -> None:
        """Blocks for at most TRIAL_SECONDS, and the start where one is due. Raises ConstraintError."""
        error = self._answer(grammar)
        if error is not None:
            raise ConstraintError(error)

    def _answer(self, grammar: str) -> str | None:
        """It may have died since it was last asked, so a new one is asked once more."""
        try:
            self.start()
            return self._ask({"grammar": grammar})
        except TrialLost:
            self.start()
            return self._ask({"grammar": grammar})

    def close(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not yet written has nobody to read it
                    stream.close()
        self._process = None

    def _ask(self, question: dict[str, Any], ceiling_s: float = ANSWER_SECONDS) -> str | None:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            is_there = select.select([process.stdout], [], [], ceiling_s)[0]
            answer = process.stdout.readline() if is_there else ""
        except OSError:
            answer = ""
        if not answer:
            self.close()
            raise TrialLost
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
