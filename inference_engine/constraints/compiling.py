"""Constraints become matchers in threads of their own, within limits of size, time and memory.

A grammar is first tried in a process that can be killed (trial.py); only one that came through is compiled
here, with the same limits, while the GIL is released. Tenants take turns (fair_threads.py), and compiled
grammars are kept per tenant: a cache shared among tenants would tell one, by its speed, what another has
asked for.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from llguidance import LLMatcher

from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint, Generate
from inference_engine.contract.sampling import SamplingParams

from .building import build
from .errors import ConstraintError
from .fair_threads import FairThreads, TooMuchWork
from .grammars import grammar_of
from .limits import CACHE_SIZE, MAX_QUEUED, MAX_QUEUED_EACH, QUEUE_SECONDS
from .matcher import Matcher
from .trial_process import TrialProcess
from .vocabulary import Vocabulary

NICENESS = 10

CacheKey = tuple[str, Constraint]


class Compiler:
    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        num_threads: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.vocabulary = vocabulary
        self._clock = clock
        self._threads = FairThreads(
            num_threads,
            max_waiting=MAX_QUEUED,
            max_waiting_each=MAX_QUEUED_EACH,
            name="octavo-grammars",
            initializer=_step_back,
        )
        self._trials = [TrialProcess(vocabulary) for _ in range(num_threads)]
        self._compiled: OrderedDict[CacheKey, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, generate: Generate) -> "Future[Matcher]":
        """Returns at once; the future holds ConstraintError or a matcher that has followed the output ids."""
        constraint = generate.constraint
        assert constraint is not None
        work = partial(self._matcher_of, generate, constraint, self._clock())
        try:
            return self._threads.submit(generate.tenant_id, work)
        except TooMuchWork:
            return _failed(ConstraintError("too many constraints wait", code=Code.QUEUE_FULL))

    def start(self) -> None:
        """Start the processes for trials now; otherwise the first constraint waits for that. Blocks."""
        for trial in self._trials:
            trial.start()

    def close(self) -> None:
        self._threads.close()
        for trial in self._trials:
            trial.close()

    def _matcher_of(self, generate: Generate, constraint: Constraint, queued_at: float) -> Matcher:
        check_sampling(generate.sampling)
        key = (generate.tenant_id, constraint)
        grammar = self._grammar(key, queued_at)
        matcher = Matcher(grammar.deep_copy(), self.vocabulary, lambda: self._rebuild(key))
        matcher.follow(generate.output_ids)
        return matcher

    def _grammar(self, key: CacheKey, queued_at: float) -> LLMatcher:
        with self._lock:
            found = self._compiled.get(key)
            if found is not None:
                self._compiled.move_to_end(key)
                return found
        if self._clock() - queued_at > QUEUE_SECONDS:
            raise ConstraintError("the constraint waited too long to be compiled", code=Code.QUEUE_TIMEOUT)
        compiled = self._build(grammar_of(key[1], self.vocabulary))
        with self._lock:
            self._compiled[key] = compiled
            while len(self._compiled) > CACHE_SIZE:
                self._compiled.popitem(last=False)
        return compiled

    def _rebuild(self, key: CacheKey) -> LLMatcher:
        """For one matcher alone; the shared grammar's lexer is used up, so nobody is to start with it."""
        with self._lock:
            self._compiled.pop(key, None)
        return build(grammar_of(key[1], self.vocabulary), self.vocabulary.tokenizer)

    def _build(self, text: str) -> LLMatcher:
        with self._lock:
            trial = self._trials.pop()
        try:
            trial.check(text)
        finally:
            with self._lock:
                self._trials.append(trial)
        return build(text, self.vocabulary.tokenizer)


def check_sampling(sampling: SamplingParams) -> None:
    """Raises ConstraintError for settings that can't hold together with a constraint.

    Only an end id can follow a complete output: `ignore_eos` would ignore it, `min_tokens` forbid it.
    """
    if sampling.ignore_eos:
        raise ConstraintError("ignore_eos can't be combined with a constraint", param="ignore_eos")
    if sampling.min_tokens:
        raise ConstraintError("min_tokens can't be combined with a constraint", param="min_tokens")


def _step_back() -> None:
    """On Linux a thread has a priority of its own: compiling yields to the model's threads."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _failed(error: ConstraintError) -> "Future[Matcher]":
    future: Future[Matcher] = Future()
    future.set_exception(error)
    return future
