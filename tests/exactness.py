"""The same requests under every circumstance that must not change a bit of their logits.

`check` runs one circumstance and compares it with each request run alone, its prompt in one piece.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine_harness import EngineHarness, RecordingRunner, Trace
from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.model_runner import RunnerLimits
from inference_engine.execution.models.model_loading import LoadedModel

PROMPT_LENGTHS = (5, 40, 63, 17)
NUM_OUTPUTS = 24
NUM_BLOCKS = 64
MIN_DISTINCT_TOKENS = 10


@dataclass
class Subject:
    """A loaded model with the backend under test; every runner made of it has an empty pool of its own."""

    model: LoadedModel
    backend: AttentionBackend
    max_step_tokens: int = 256

    def runner(self, num_blocks: int = NUM_BLOCKS) -> RecordingRunner:
        limits = RunnerLimits(max_running=8, max_step_tokens=self.max_step_tokens)
        return RecordingRunner(self.model, self.backend, limits, num_blocks=num_blocks)

    def harness(self, num_blocks: int = NUM_BLOCKS, **settings: object) -> EngineHarness:
        return EngineHarness(self.runner(num_blocks), **settings)

    def prompts(self) -> list[list[int]]:
        """Ids that jump about the vocabulary; no two prompts share a first block."""
        return [
            [(7919 * i * i + 31 * length + i) % self.model.vocab_size for i in range(length)]
            for length in PROMPT_LENGTHS
        ]


Circumstance = Callable[[Subject], list[Trace]]


def alone(subject: Subject) -> list[Trace]:
    traces = []
    for prompt in subject.prompts():
        harness = subject.harness(enable_prefix_cache=False)
        traces.append(harness.add(prompt, max_tokens=NUM_OUTPUTS))
        harness.run()
    return traces


def batched(subject: Subject, **settings: object) -> list[Trace]:
    return _together(subject.harness(**settings))


def chunked(subject: Subject) -> list[Trace]:
    traces = []
    for prompt in subject.prompts():
        harness = subject.harness(max_running=2, max_step_tokens=7)
        traces.append(harness.add(prompt, max_tokens=NUM_OUTPUTS))
        harness.run()
    assert max(trace.request.num_chunks for trace in traces) > NUM_OUTPUTS + 5
    return traces


def chunked_beside_decodes(subject: Subject) -> list[Trace]:
    """Each request arrives while those before it decode; its prompt goes in by five tokens a step."""
    harness = subject.harness(prefill_budget=5)
    traces = []
    for prompt in subject.prompts():
        traces.append(harness.add(prompt, max_tokens=NUM_OUTPUTS))
        harness.step()
        harness.step()
    harness.run()
    return traces


def preempted(subject: Subject) -> list[Trace]:
    """Twelve blocks for sequences that end up needing seventeen."""
    traces = _together(subject.harness(num_blocks=12))
    assert sum(trace.request.num_preemptions for trace in traces) > 0
    assert sum(trace.request.num_recomputed_tokens for trace in traces) > 0
    return traces


def lagged(subject: Subject) -> list[Trace]:
    """Each step is planned before the tokens of the one before are known."""
    return batched(subject, lag=1)


def prefix_hit(subject: Subject) -> list[Trace]:
    """Every prompt of a block or more finds its beginning in the cache of an earlier run."""
    harness = subject.harness()
    _together(harness)
    traces = _together(harness)
    for trace in traces:
        assert trace.accepted.cached_tokens == (len(trace.request.prompt_ids) - 1) // 16 * 16
    return traces


def shuffled_pages(subject: Subject) -> list[Trace]:
    harness = subject.harness()
    harness.runner.shuffle_blocks(seed=3)
    return _together(harness)


def poisoned_pages(subject: Subject) -> list[Trace]:
    """Whatever earlier requests left in the blocks, here NaN everywhere."""
    harness = subject.harness()
    for layer in harness.runner.pool.layers:
        layer.keys.fill_(torch.nan)
        layer.values.fill_(torch.nan)
    return _together(harness)


CIRCUMSTANCES: list[Circumstance] = [
    batched,
    chunked,
    chunked_beside_decodes,
    preempted,
    lagged,
    prefix_hit,
    shuffled_pages,
    poisoned_pages,
]


def check(circumstance: Circumstance, subject: Subject, expected: list[Trace]) -> None:
    """`expected` is `alone(subject)`."""
    distinct = {token for trace in expected for token in trace.token_ids}
    assert len(distinct) >= MIN_DISTINCT_TOKENS, "too few distinct tokens to see anything"
    for wanted, trace in zip(expected, circumstance(subject), strict=True):
        assert trace.token_ids == wanted.token_ids
        assert torch.equal(trace.logits, wanted.logits)


def _together(harness: EngineHarness) -> list[Trace]:
    subject_prompts = Subject(harness.runner.model, harness.runner.backend).prompts()
    traces = [harness.add(prompt, max_tokens=NUM_OUTPUTS) for prompt in subject_prompts]
    harness.run()
    return traces
