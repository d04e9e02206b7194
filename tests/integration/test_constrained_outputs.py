"""Constrained requests through the real scheduler and a real runner over a tiny model of random weights.

Its wishes have nothing to do with JSON, so whatever validates, the masks have seen to; and every output is
compared with that of the same request alone.
"""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import torch

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.constraints.building import build
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.requests import Constraint, ConstraintKind
from stand_ins.tiny_model import END_ID, VOCAB_SIZE
from stand_ins.tiny_text import byte_level_tokenizer
from tiny_models import save_tiny_llama

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{20,26}$"},
        "size": {"type": "integer", "minimum": 10, "maximum": 999},
    },
    "required": ["name", "size"],
    "additionalProperties": False,
}
SPELLING = r'\{"name":"[a-z]{20,26}","size":[1-9][0-9]{1,2}\}'
"""The schema without white space, which is what random weights would write most of."""
PROMPTS = [[(37 * i * i + 5 + 11 * salt) % 200 for i in range(40)] for salt in range(4)]
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 42},
    {"temperature": 1.0, "top_p": 0.9, "seed": -7},
    {"temperature": 1.5, "top_k": 40, "seed": 3},
]
MAX_TOKENS = 64

MakeHarness = Callable[..., EngineHarness]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary(byte_level_tokenizer(), vocab_size=VOCAB_SIZE, end_ids=[END_ID])


@pytest.fixture(scope="module")
def make_harness(vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> MakeHarness:
    """Harnesses over one model, each with a KV pool of its own."""
    folder = save_tiny_llama(tmp_path_factory.mktemp("llama"), vocab_size=VOCAB_SIZE)
    loaded = RecordingRunner.load(
        folder, backend="reference", dtype="bfloat16", num_blocks=64, max_running=8, max_step_tokens=256
    )
    assert loaded.warm().is_invariant

    def make(num_blocks: int = 64, lag: int = 0) -> EngineHarness:
        runner = RecordingRunner(loaded.model, loaded.backend, loaded.limits, num_blocks=num_blocks)
        runner.serve_constraints(vocabulary)
        return EngineHarness(runner, end_ids=frozenset([END_ID]), lag=lag)

    return make


@pytest.fixture
def matcher(vocabulary: Vocabulary) -> Callable[[], Matcher]:
    constraint = Constraint(kind=ConstraintKind.REGEX, source=SPELLING)
    return lambda: Matcher(build(grammar_of(constraint, vocabulary), vocabulary.tokenizer), vocabulary)


def alone(harness: EngineHarness, prompt: list[int], **fields: Any) -> Trace:
    trace = harness.add(prompt, max_tokens=MAX_TOKENS, **fields)
    harness.run()
    return trace


def check_valid(trace: Trace, vocabulary: Vocabulary) -> None:
    assert trace.finish is FinishReason.STOP
    jsonschema.validate(json.loads(vocabulary.tokenizer.decode_bytes(trace.token_ids)), SCHEMA)


@pytest.mark.parametrize(
    ("sampling", "lag"),
    [(SETTINGS[0], 0), (SETTINGS[1], 1), (SETTINGS[3], 1)],
    ids=["greedy", "seeded", "top_k"],
)
def test_preempted_outputs_are_valid_and_read_as_if_alone(
    make_harness: MakeHarness, matcher: Any, vocabulary: Vocabulary, sampling: dict[str, Any], lag: int
) -> None:
    solos = [alone(make_harness(), prompt, matcher=matcher(), **sampling) for prompt in PROMPTS[:2]]
    harness = make_harness(num_blocks=8, lag=lag)
    traces = [
        harness.add(prompt, max_tokens=MAX_TOKENS, matcher=matcher(), **sampling) for prompt in PROMPTS[:2]
    ]
    harness.run()
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert [trace.token_ids for trace in traces] == [solo.token_ids for solo in solos]
    for trace in traces:
        check_valid(trace, vocabulary)


@pytest.mark.parametrize("lag", [0, 1])
def test_neighbours_of_a_constrained_request_are_bitwise_as_if_alone(
    make_harness: MakeHarness, matcher: Any, vocabulary: Vocabulary, lag: int
) -> None:
    free = {"max_tokens": 40, "ignore_eos": True}
    solos = []
    for prompt, sampling in zip(PROMPTS, SETTINGS, strict=True):
        harness = make_harness()
        solos.append(harness.add(prompt, **free, **sampling))
        harness.run()
    harness = make_harness(lag=lag)
    traces = []
    for prompt, sampling in zip(PROMPTS, SETTINGS, strict=True):
        traces.append(harness.add(prompt, **free, **sampling))
        constrained = harness.add(prompt, max_tokens=MAX_TOKENS, matcher=matcher(), **sampling)
        harness.step()
    harness.run()
    check_valid(constrained, vocabulary)
    assert [trace.token_ids for trace in traces] == [solo.token_ids for solo in solos]
    assert all(torch.equal(t.logits, s.logits) for t, s in zip(traces, solos, strict=True))


def test_an_output_goes_on_from_what_another_engine_has_emitted(
    make_harness: MakeHarness, matcher: Any
) -> None:
    whole = alone(make_harness(), PROMPTS[0], matcher=matcher(), **SETTINGS[1])
    for count in (1, len(whole.token_ids) - 1):
        resumed = matcher()
        resumed.follow(whole.token_ids[:count])
        rest = alone(
            make_harness(),
            PROMPTS[0],
            matcher=resumed,
            output_ids=whole.token_ids[:count],
            **SETTINGS[1],
        )
        assert rest.token_ids == whole.token_ids[count:]
        assert rest.finish is FinishReason.STOP


@pytest.mark.parametrize("lag", [0, 1])
def test_choices_of_one_group_each_follow_a_matcher_of_their_own(
    make_harness: MakeHarness, matcher: Any, vocabulary: Vocabulary, lag: int
) -> None:
    settings = {"temperature": 1.5, "seed": 3, "max_tokens": MAX_TOKENS}
    harness = make_harness(lag=lag)
    traces = [
        harness.add(PROMPTS[0], choice=choice, group_id="g", matcher=matcher(), **settings)
        for choice in range(3)
    ]
    harness.run()
    for choice, trace in enumerate(traces):
        check_valid(trace, vocabulary)
        solo = alone(make_harness(), PROMPTS[0], choice=choice, matcher=matcher(), temperature=1.5, seed=3)
        assert trace.token_ids == solo.token_ids
    assert len({tuple(trace.token_ids) for trace in traces}) == 3


def test_logprobs_are_those_of_the_model_not_of_what_the_mask_leaves(
    make_harness: MakeHarness, matcher: Any
) -> None:
    trace = alone(make_harness(), PROMPTS[0], matcher=matcher(), logprobs=3)
    free = alone(make_harness(), PROMPTS[0], logprobs=3)
    assert torch.equal(trace.rows[0], free.rows[0])
    assert free.token_ids[0] != trace.token_ids[0] == ord("{")
    expected = trace.rows[0].double().log_softmax(0)[trace.token_ids[0]]
    harness = make_harness()
    harness.add(PROMPTS[0], max_tokens=1, matcher=matcher(), logprobs=3)
    plan = harness.scheduler.plan()
    assert plan is not None
    [token] = harness.runner.run(plan).sampled
    assert token is not None and token.logprob == pytest.approx(float(expected))
    assert [id_ for id_, _ in token.top] == free.rows[0].topk(3).indices.tolist()


class Breaking:
    """A matcher whose grammar fails after some tokens."""

    def __init__(self, inner: Matcher, breaks_at: int) -> None:
        self._inner, self._breaks_at = inner, breaks_at

    @property
    def num_consumed(self) -> int:
        return self._inner.num_consumed

    def fill(self, row: Any) -> None:
        if self.num_consumed >= self._breaks_at:
            raise ConstraintError("used up", code=Code.UNSUPPORTED_FEATURE)
        self._inner.fill(row)

    def advance(self, token_id: int) -> None:
        self._inner.advance(token_id)

    def roll_back(self, num_tokens: int) -> None:
        self._inner.roll_back(num_tokens)


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("breaks_at", [0, 7])
def test_a_grammar_that_fails_while_it_runs_fails_its_own_request_only(
    make_harness: MakeHarness, matcher: Any, vocabulary: Vocabulary, lag: int, breaks_at: int
) -> None:
    solo = alone(make_harness(), PROMPTS[1], matcher=matcher(), **SETTINGS[1])
    harness = make_harness(lag=lag)
    broken = harness.add(PROMPTS[0], max_tokens=50, matcher=Breaking(matcher(), breaks_at))
    spared = harness.add(PROMPTS[1], max_tokens=MAX_TOKENS, matcher=matcher(), **SETTINGS[1])
    harness.run()
    assert broken.finish is FinishReason.FAILED
    assert broken.request.code is Code.UNSUPPORTED_FEATURE
    assert len(broken.token_ids) == breaks_at
    assert spared.token_ids == solo.token_ids


@pytest.mark.parametrize("lag", [0, 1])
def test_a_step_that_fails_leaves_matchers_to_nobody(
    make_harness: MakeHarness, matcher: Any, vocabulary: Vocabulary, lag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The masks of the failed step are waited for, and the next requests are served."""
    harness = make_harness(lag=lag)
    harness.add(PROMPTS[0], max_tokens=MAX_TOKENS, matcher=matcher())
    plan = harness.scheduler.plan()
    assert plan is not None
    with monkeypatch.context() as patched:
        patched.setattr(harness.runner, "_logits", lambda inputs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            harness.runner.run(plan)
    check_valid(alone(make_harness(lag=lag), PROMPTS[0], matcher=matcher()), vocabulary)


def test_a_stop_token_of_the_request_ends_it_wherever_it_occurs(
    make_harness: MakeHarness, matcher: Any
) -> None:
    whole = alone(make_harness(), PROMPTS[0], matcher=matcher())
    stop = whole.token_ids[20]
    cut = alone(make_harness(), PROMPTS[0], matcher=matcher(), stop_token_ids=(stop,))
    assert cut.finish is FinishReason.STOP
    assert cut.token_ids == whole.token_ids[: whole.token_ids.index(stop)]
