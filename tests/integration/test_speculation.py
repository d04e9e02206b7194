"""Drafts change how fast the real model goes and not one bit of what it says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.constraints.building import build
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.requests import Constraint, ConstraintKind
from inference_engine.execution.models.model_files import load_model_files
from matrix_threads import matrix_threads

TEXT = """def area(width, height):
    return width * height

def volume(width, height, depth):
    return width * height * depth

"""
NUM_DRAFTS = 8
MAX_TOKENS = 48
COPYING: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "seeded": {"temperature": 0.4, "seed": 11, "top_p": 0.9},
    "unfiltered": {"temperature": 0.3, "seed": -5},
    "biased": {"temperature": 0.0, "logit_bias": {28: -1.0, 9000: 2.0}, "min_tokens": 40},
    "bad words": {"temperature": 0.3, "seed": 4, "bad_words_ids": ((9000,), (11, 12, 13)), "min_p": 0.02},
    "logprobs": {"temperature": 0.2, "seed": 1, "logprobs": 4},
}
STRAYING: dict[str, dict[str, Any]] = {
    "penalties": {
        "temperature": 0.4,
        "seed": 2,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "repetition_penalty": 1.02,
    },
    "hot": {"temperature": 1.5, "seed": 42, "top_k": 200},
}
CITIES = r'\[("Paris"|"Rome"|"Oslo")(, ("Paris"|"Rome"|"Oslo")){5,9}\]'


@dataclass
class Bench:
    loaded: RecordingRunner
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    expected: dict[str, Trace] = field(default_factory=dict)

    def prompt(self, text: str = TEXT * 3) -> list[int]:
        """What has been there three times comes again."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def harness(self, num_blocks: int = 96, **settings: Any) -> EngineHarness:
        runner = RecordingRunner(
            self.loaded.model, self.loaded.backend, self.loaded.limits, num_blocks=num_blocks
        )
        runner.serve_constraints(self.vocabulary)
        end_ids = frozenset(self.vocabulary.end_ids)
        return EngineHarness(runner, end_ids=end_ids, **settings)

    def alone(self, prompt: list[int], **fields: Any) -> Trace:
        harness = self.harness(lag=fields.pop("lag", 0))
        trace = harness.add(prompt, **{"max_tokens": MAX_TOKENS, **fields})
        harness.run()
        return trace


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for other threads would be most of the time on a busy machine."""
    with matrix_threads(1):
        yield


@pytest.fixture(scope="module")
def bench(smollm2_dir: Path, compiler: str) -> Iterator[Bench]:
    files = load_model_files(smollm2_dir)
    vocabulary = load_vocabulary(files.tokenizer_json, vocab_size=files.vocab_size, end_ids=files.end_ids)
    loaded = RecordingRunner.load(
        smollm2_dir, backend="cpu", num_blocks=16, max_running=16, max_step_tokens=256
    )
    assert loaded.warm().is_invariant
    yield Bench(loaded, vocabulary, Tokenizer.from_file(str(smollm2_dir / "tokenizer.json")))


def assert_same(trace: Trace, expected: Trace) -> None:
    assert trace.token_ids == expected.token_ids
    assert (trace.finish, trace.request.code) == (expected.finish, expected.request.code)
    assert torch.equal(trace.logits, expected.logits)
    assert trace.logprobs == expected.logprobs


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("sampling", [*COPYING.values(), *STRAYING.values()], ids=[*COPYING, *STRAYING])
def test_tokens_logits_and_logprobs_are_those_without_drafts(
    bench: Bench, sampling: dict[str, Any], lag: int
) -> None:
    name = str(sampling)
    expected = bench.expected[name] = bench.expected.get(name) or bench.alone(bench.prompt(), **sampling)
    harness = bench.harness(lag=lag)
    trace = harness.add(bench.prompt(), max_tokens=MAX_TOKENS, num_draft_tokens=NUM_DRAFTS, **sampling)
    harness.run()
    assert_same(trace, expected)
    stats = harness.scheduler.stats()
    if sampling in COPYING.values():
        assert stats.num_accepted_tokens > 10
        assert stats.num_steps < 0.8 * len(expected.token_ids)
    assert stats.num_accepted_tokens <= stats.num_drafted_tokens


def test_a_stop_id_among_accepted_drafts_ends_the_output_there(bench: Bench) -> None:
    whole = bench.alone(bench.prompt(), temperature=0.0)
    stop = next(id_ for id_ in whole.token_ids[15:] if id_ not in whole.token_ids[:15])
    sampling = {"temperature": 0.0, "stop_token_ids": (stop,), "min_tokens": 5}
    expected = bench.alone(bench.prompt(), **sampling)
    trace = bench.alone(bench.prompt(), num_draft_tokens=NUM_DRAFTS, **sampling)
    assert_same(trace, expected)
    assert trace.finish is FinishReason.STOP and len(trace.token_ids) == whole.token_ids.index(stop)


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"temperature": 0.9, "seed": 3}], ids=str)
def test_a_grammar_goes_with_the_drafts_and_back(bench: Bench, sampling: dict[str, Any], lag: int) -> None:
    def matcher() -> Matcher:
        grammar = grammar_of(Constraint(kind=ConstraintKind.REGEX, source=CITIES), bench.vocabulary)
        return Matcher(build(grammar, bench.vocabulary.tokenizer), bench.vocabulary)

    prompt = bench.prompt('["Paris", "Rome", "Oslo", "Paris", "Rome", "Oslo"]\n')
    expected = bench.alone(prompt, matcher=matcher(), **sampling)
    harness = bench.harness(lag=lag)
    trace = harness.add(
        prompt, matcher=matcher(), max_tokens=MAX_TOKENS, num_draft_tokens=NUM_DRAFTS, **sampling
    )
    harness.run()
    assert_same(trace, expected)
    assert trace.finish is FinishReason.STOP
    stats = harness.scheduler.stats()
    assert stats.num_accepted_tokens > 0
    assert stats.num_steps < len(expected.token_ids)


@pytest.mark.parametrize("lag", [0, 1])
def test_preempted_requests_read_as_if_alone(bench: Bench, lag: int) -> None:
    prompts = [bench.prompt(TEXT[:90] * 2), bench.prompt(TEXT[30:] * 2)]
    sampling: dict[str, Any] = {"temperature": 0.3, "seed": 8, "frequency_penalty": 0.02}
    expected = [bench.alone(prompt, **sampling) for prompt in prompts]
    needed = sum(-(-(len(prompt) + MAX_TOKENS) // 16) for prompt in prompts)
    harness = bench.harness(num_blocks=needed - 4, lag=lag)
    traces = [
        harness.add(prompt, max_tokens=MAX_TOKENS, num_draft_tokens=NUM_DRAFTS, **sampling)
        for prompt in prompts
    ]
    harness.run()
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert harness.scheduler.stats().num_accepted_tokens > 0
    for trace, wanted in zip(traces, expected, strict=True):
        assert trace.token_ids == wanted.token_ids


def test_neighbours_with_and_without_drafts_read_as_if_alone(bench: Bench) -> None:
    """Choices of one prompt that fork among them, and one that is aborted in the middle."""
    sampling: dict[str, Any] = {"temperature": 0.4, "seed": 5}
    expected = [bench.alone(bench.prompt(), choice=choice, **sampling) for choice in range(3)]
    harness = bench.harness()
    traces = [
        harness.add(
            bench.prompt(),
            choice=choice,
            group_id="g",
            max_tokens=MAX_TOKENS,
            num_draft_tokens=(NUM_DRAFTS, 0, 3)[choice],
            **sampling,
        )
        for choice in range(3)
    ]
    gone = harness.add(bench.prompt(), max_tokens=MAX_TOKENS, num_draft_tokens=NUM_DRAFTS)
    while len(gone.token_ids) < 12:
        harness.step()
    assert harness.scheduler.abort(gone.request.request_id, 0, Code.CLIENT_GONE)
    harness.run()
    assert harness.scheduler.stats().num_accepted_tokens > 10
    for trace, wanted in zip(traces, expected, strict=True):
        assert trace.token_ids == wanted.token_ids


def test_only_what_held_is_found_in_the_prefix_cache(bench: Bench) -> None:
    """The next turn of a conversation finds prompt and answer there, and reads as if computed anew."""
    harness = bench.harness()
    first = harness.add(bench.prompt(), max_tokens=MAX_TOKENS, num_draft_tokens=NUM_DRAFTS)
    harness.run()
    assert harness.scheduler.stats().num_accepted_tokens > 10
    following = [*bench.prompt(), *first.token_ids, *bench.prompt("And now?")]
    expected = bench.alone(following, max_tokens=12)
    again = harness.add(following, max_tokens=12)
    harness.run()
    assert again.accepted.cached_tokens >= (len(bench.prompt()) + len(first.token_ids) - 1) // 16 * 16
    assert_same(again, expected)


def test_no_request_drafts_where_the_engine_does_not(bench: Bench) -> None:
    harness = bench.harness(max_draft_tokens=0)
    harness.add(bench.prompt(), max_tokens=20, num_draft_tokens=NUM_DRAFTS)
    harness.run()
    assert harness.scheduler.stats().num_drafted_tokens == 0


def test_rows_sampled_stay_within_the_places_there_are(bench: Bench) -> None:
    harness = bench.harness()
    most = 0
    run: Callable[..., Any] = harness.runner.run

    def counted(plan: Any) -> Any:
        nonlocal most
        most = max(most, sum(chunk.num_sampled for chunk in plan.chunks))
        return run(plan)

    harness.runner.run = counted
    for _ in range(10):
        harness.add(bench.prompt(), max_tokens=30, num_draft_tokens=NUM_DRAFTS)
    harness.run()
    assert 10 < most <= harness.scheduler.config.max_running
