"""Constraints become matchers off the loop, in bounded time, or a refusal of that one request."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from inference_engine.constraints.compiling import Compiler
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.limits import MAX_QUEUED, MAX_QUEUED_EACH, QUEUE_SECONDS
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.trial_process import TrialProcess
from inference_engine.constraints.vocabulary import UnsupportedTokenizer, Vocabulary, load_vocabulary
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ConstraintKind, Generate
from inference_engine.contract.sampling import SamplingParams
from random_model import RandomModel
from schema_suite import fault_of

JSON, REGEX, GRAMMAR = ConstraintKind.JSON_SCHEMA, ConstraintKind.REGEX, ConstraintKind.GRAMMAR
TOO_COMPLEX = {"type": "integer", "allOf": [{"multipleOf": 9973}, {"multipleOf": 9967}]}
LIMIT_S = 5.0
AskFor = Callable[..., Generate]


def nested_one_of(levels: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {"oneOf": [wrap(schema), {"type": "string", "maxLength": 3}]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "hiccup"},
        {"type": 123},
        {"$ref": "#/nope"},
        {"$ref": "#"},
        {"type": "string", "pattern": "[invalid("},
    ],
    ids=str,
)
def test_case_16_bad_schemas_are_refused(schema: Any, compiler: Compiler, a_request: AskFor) -> None:
    error = refusal(compiler.compile(a_request(JSON, schema)))
    assert (error.code, error.param) == (Code.INVALID_REQUEST, "constraint")


@pytest.mark.parametrize(
    ("schema", "has_ended"),
    [
        (nested_one_of(30, lambda inner: inner), None),
        (
            nested_one_of(
                30, lambda inner: {"type": "object", "properties": {"a": inner}, "required": ["a"]}
            ),
            True,
        ),
        ({"type": "string", "pattern": "^(a+)+$"}, True),
        ({"type": "string", "pattern": "(a+)+$", "maxLength": 9}, True),
        ({"type": "string", "minLength": 1_000_000}, False),
        (TOO_COMPLEX, None),
    ],
    ids=["oneOf", "oneOf in objects", "^(a+)+$", "(a+)+$", "minLength", "multipleOf"],
)
def test_case_17_hard_schemas_are_refused_or_kept_within_five_seconds(
    schema: Any, has_ended: bool | None, compiler: Compiler, a_request: AskFor, vocabulary: Vocabulary
) -> None:
    compiler.start()
    began = time.monotonic()
    future = compiler.compile(a_request(JSON, schema))
    error = future.exception(timeout=60)
    assert time.monotonic() - began < LIMIT_S
    if has_ended is None:
        assert isinstance(error, ConstraintError)
        return
    written = RandomModel(vocabulary, 1).write(future.result(), 200)
    assert written.has_ended is has_ended
    assert not has_ended or fault_of(schema, written.text) == ""


def test_a_grammar_that_ran_out_of_its_share_harms_no_other(compiler: Compiler, a_request: AskFor) -> None:
    heavy = compiler.compile(a_request(JSON, TOO_COMPLEX))
    light = compiler.compile(a_request(JSON, {"type": "integer"}, tenant_id="bob"))
    assert light.result(timeout=60).num_consumed == 0
    assert "too complex" in refusal(heavy).message
    assert compiler.compile(a_request(JSON, {"type": "null"})).result(timeout=60).num_consumed == 0


@pytest.mark.parametrize(
    ("kind", "source", "named"),
    [
        (REGEX, "[invalid(", "ends too early"),
        (REGEX, "a^b", "lookarounds"),
        (GRAMMAR, "start: nope", "nope"),
        (GRAMMAR, 'start: %json {"not": {}}', "%json"),
        (GRAMMAR, "start: <|im_end|>", "angle brackets"),
        (GRAMMAR, "start: @other", "@"),
        (GRAMMAR, 'start[temperature=0.1]: "a"', "temperature"),
        (GRAMMAR, 'start: "a"\n%llguidance {}', "%llguidance"),
        (GRAMMAR, "", "compiled"),
        (JSON, {"oneOf": [{"minimum": 1}, {"maximum": 5}]}, "'oneOf'"),
        (JSON, {"patternProperties": {"a": {}, "ab": {}}}, "'patternProperties'"),
        (JSON, {"properties": {"a": {}}, "minProperties": 1, "maxProperties": 3}, "'minProperties'"),
        (JSON, {"type": "integer", "minimum": 3, "maximum": 2}, "minimum"),
    ],
)
def test_what_cannot_be_compiled_says_why(
    kind: ConstraintKind, source: Any, named: str, compiler: Compiler, a_request: AskFor
) -> None:
    assert named in refusal(compiler.compile(a_request(kind, source))).message


@pytest.mark.parametrize(("field", "value"), [("ignore_eos", True), ("min_tokens", 3)])
def test_settings_that_forbid_the_end_are_refused(
    field: str, value: Any, compiler: Compiler, a_request: AskFor
) -> None:
    sampling = SamplingParams(**{"seed": 1, "max_tokens": 9, field: value})
    error = refusal(compiler.compile(a_request(ConstraintKind.JSON_OBJECT, sampling=sampling)))
    assert (error.code, error.param) == (Code.INVALID_REQUEST, field)


def test_a_resumed_request_goes_on_where_it_was(compiler: Compiler, a_request: AskFor) -> None:
    output_ids = compiler.vocabulary.tokenizer.tokenize_str('{"a": [1')
    request = a_request(ConstraintKind.JSON_OBJECT, output_ids=output_ids)
    assert compiler.compile(request).result(timeout=60).num_consumed == len(output_ids)
    broken = a_request(
        ConstraintKind.JSON_OBJECT, output_ids=compiler.vocabulary.tokenizer.tokenize_str("{]")
    )
    assert refusal(compiler.compile(broken)).param == "output_ids"


def test_matchers_of_one_grammar_do_not_share_their_state(compiler: Compiler, a_request: AskFor) -> None:
    first, second = (compiler.compile(a_request(REGEX, "ab?")).result(timeout=60) for _ in range(2))
    first.advance(*compiler.vocabulary.tokenizer.tokenize_str("a"))
    assert (first.is_accepting, second.is_accepting) == (True, False)


def test_no_request_fails_of_a_lexer_that_others_used_up(compiler: Compiler, a_request: AskFor) -> None:
    """2^40 states: a hundred requests use up the shared ones, and each goes on with some of its own."""
    source = "(a|b)*a(a|b){40}c"
    choices = random.Random(1)
    a, b = compiler.vocabulary.tokenizer.tokenize_str("a"), compiler.vocabulary.tokenizer.tokenize_str("b")
    matcher = compiler.compile(a_request(REGEX, source)).result(timeout=60)
    shared = compiler._compiled["alice", a_request(REGEX, source).constraint]
    for _ in range(100):
        matcher = Matcher(shared.deep_copy(), compiler.vocabulary)
        try:
            matcher.follow([choices.choice(a + b) for _ in range(1000)])
        except ConstraintError:
            break
    else:
        pytest.fail("the shared states were never used up")
    request = a_request(REGEX, source, output_ids=[choices.choice(a + b) for _ in range(1000)])
    assert compiler.compile(request).result(timeout=60).num_consumed == 1000
    assert compiler._compiled == {}


def test_compiled_grammars_are_kept_for_the_tenant_alone(compiler: Compiler, a_request: AskFor) -> None:
    for tenant_id in ("alice", "alice", "charlie"):
        compiler.compile(a_request(REGEX, "a", tenant_id=tenant_id)).result(timeout=60)
    assert [tenant_id for tenant_id, _ in compiler._compiled] == ["alice", "charlie"]


def test_a_full_queue_refuses(compiler: Compiler, a_request: AskFor) -> None:
    release = threading.Event()
    begun = threading.Semaphore(0)

    def hold() -> bool:
        begun.release()
        return release.wait(60)

    blocked = [compiler._threads.submit(name, hold) for name in ("x", "y")]
    assert all(begun.acquire(timeout=60) for _ in blocked)
    waiting = [
        compiler.compile(a_request(REGEX, "a", tenant_id=f"t{number // MAX_QUEUED_EACH}"))
        for number in range(MAX_QUEUED)
    ]
    assert refusal(compiler.compile(a_request(REGEX, "a"))).code is Code.QUEUE_FULL
    release.set()
    assert all(future.result(timeout=60).num_consumed == 0 for future in waiting)
    assert all(future.result() for future in blocked)
    assert compiler.compile(a_request(REGEX, "a")).result(timeout=60).num_consumed == 0


def test_a_tenant_with_many_slow_schemas_delays_no_other_and_only_its_own_are_refused(
    vocabulary: Vocabulary, a_request: AskFor
) -> None:
    """On two threads one is always free for somebody else, so the other's never wait at all: by the clock
    here, which stands still, whatever waits would come out as in time."""
    compiler = Compiler(vocabulary)
    compiler.start()
    slow = [compiler.compile(a_request(JSON, TOO_COMPLEX, tenant_id="flood")) for _ in range(100)]
    light = compiler.compile(a_request(JSON, {"type": "integer"}, tenant_id="bob"))
    assert light.result(timeout=60).num_consumed == 0
    assert sum(future.done() for future in slow) <= 100 - MAX_QUEUED_EACH + 5
    refused = [future for future in slow if future.done()]
    assert {refusal(future).code for future in refused} >= {Code.QUEUE_FULL}
    for future in slow:
        future.cancel()
    assert len(compiler._threads) == 0
    compiler.close()


def test_who_waited_too_long_is_told_so(vocabulary: Vocabulary, a_request: AskFor) -> None:
    times = iter([0.0, QUEUE_SECONDS + 0.1])
    compiler = Compiler(vocabulary, clock=lambda: next(times))
    assert refusal(compiler.compile(a_request(REGEX, "a"))).code is Code.QUEUE_TIMEOUT
    compiler.close()


def test_a_trial_process_that_died_is_started_again(vocabulary: Vocabulary) -> None:
    trial = TrialProcess(vocabulary)
    trial.start()
    before = trial.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    with pytest.raises(ConstraintError, match="can't be compiled"):
        trial.check("not a grammar")
    assert trial.pid not in (None, before)
    trial.close()


def test_the_trial_process_ends_with_its_input(vocabulary: Vocabulary) -> None:
    trial = TrialProcess(vocabulary)
    trial.start()
    process = trial._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    trial.close()


def test_a_model_without_end_ids_serves_no_constraints(vocabulary: Vocabulary) -> None:
    with pytest.raises(UnsupportedTokenizer):
        load_vocabulary(vocabulary.tokenizer_json, vocab_size=vocabulary.size, end_ids=[])
    with pytest.raises(UnsupportedTokenizer):
        load_vocabulary(b"{}", vocab_size=10, end_ids=[1])


def refusal(future: "Future[Matcher]") -> ConstraintError:
    error = future.exception(timeout=60)
    assert isinstance(error, ConstraintError)
    return error
