"""A process that compiles grammars on trial: Rust code in a thread can't be stopped, a process can.

`python -m inference_engine.constraints.trial`. The first line of its input is one JSON object with the
arguments of `load_vocabulary`, every further one {"grammar"}; each is answered by a line {"error"}, null if
all is well. It forks for each grammar, so the tokenizer is there already and a child that runs out of time or
memory dies alone. It ends when its input does.
"""

import json
import os
import resource
import signal
import sys
from typing import TextIO

from .building import build
from .errors import ConstraintError
from .limits import TRIAL_CPU_SECONDS, TRIAL_MEMORY_BYTES, TRIAL_SECONDS
from .vocabulary import Vocabulary, load_vocabulary

NICENESS = 10
TOO_COMPLEX = (
    f"the constraint is too complex: compiling it takes more than {TRIAL_CPU_SECONDS:g} s of a processor"
    f" or {TRIAL_MEMORY_BYTES // 1024**2} MiB"
)


def main(source: TextIO, target: TextIO) -> None:
    opening = json.loads(source.readline())
    tokenizer_json = opening.pop("tokenizer_json").encode()
    vocabulary = load_vocabulary(tokenizer_json, **opening)
    os.nice(NICENESS)  # from here on: an engine that starts waits for what is above
    _answer(target, None)
    for line in source:
        _answer(target, _try_in_child(json.loads(line)["grammar"], vocabulary))


def _answer(target: TextIO, error: str | None) -> None:
    target.write(json.dumps({"error": error}) + "\n")
    target.flush()


def _try_in_child(grammar: str, vocabulary: Vocabulary) -> str | None:
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        _limit_self()
        error = _error_of(grammar, vocabulary)
        os.write(sender, json.dumps(error).encode())
        os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as answer:
        error_json = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(error_json) if status == 0 else TOO_COMPLEX


def _limit_self() -> None:
    """The signals of both timers end the process, whatever code it is in."""
    signal.setitimer(signal.ITIMER_PROF, TRIAL_CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, TRIAL_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (TRIAL_MEMORY_BYTES, TRIAL_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _error_of(grammar: str, vocabulary: Vocabulary) -> str | None:
    try:
        build(grammar, vocabulary.tokenizer)
    except ConstraintError as error:
        return error.message
    return None


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
