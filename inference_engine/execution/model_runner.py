"""Runs step plans: block copies, one forward pass over the packed rows, sampling."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from inference_engine.constraints.masks import MaskFiller
from inference_engine.constraints.vocabulary import Vocabulary
from inference_engine.contract.codes import Code
from inference_engine.contract.events import TokenLogprobs
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.execution.attention.backend import AttentionBackend
from inference_engine.execution.attention.select import choose_backend
from inference_engine.execution.forward.packed_forward import hidden_states, logits_of_rows, padding_of
from inference_engine.execution.forward.packed_step import PackedStep
from inference_engine.execution.forward.prompt_scores import score_prompts
from inference_engine.execution.memory.kv_memory import PoolBudget, pool_blocks
from inference_engine.execution.memory.kv_pool import KvPool
from inference_engine.execution.models.fingerprint import numerics_fingerprint
from inference_engine.execution.models.invariance_probe import ProbeReport, Progress, probe_model
from inference_engine.execution.models.model_loading import LoadedModel, load_model
from inference_engine.execution.models.numerics import choose_dtype
from inference_engine.execution.models.weight_files import find_weight_files, weights_revision
from inference_engine.execution.products.quantization import INT8
from inference_engine.execution.sampling.adjustments import Adjustments
from inference_engine.execution.sampling.sampler import Sampler
from inference_engine.execution.steps.constrained_rows import ConstrainedRows
from inference_engine.execution.steps.step_inputs import PendingTokens, StepInputs, build_inputs
from inference_engine.execution.steps.verification import outcomes_of, step_result
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken, StepPlan, StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    max_running: int
    """Also the most rows that are sampled in a step, those after drafts included."""
    max_step_tokens: int


class ModelRunner:
    """One model on one device. Not thread-safe: one thread loads, warms and runs it."""

    def __init__(
        self,
        model: LoadedModel,
        backend: AttentionBackend,
        limits: RunnerLimits,
        *,
        num_blocks: int,
        revision: str = "",
    ) -> None:
        self.model = model
        self.backend = backend
        self.limits = limits
        self.revision = revision
        self.pool = KvPool(backend, model.layer_specs, num_blocks)
        self.padded = padding_of(model.module, backend)
        self._sampler = Sampler()
        self._pending = PendingTokens()
        self._adjustments = Adjustments()
        self._prompt_scores: dict[int, list[TokenLogprobs] | None] = {}
        """Of the step that is being run."""
        self._masks: MaskFiller | None = None
        self._probe: ProbeReport | None = None

    @classmethod
    def load(
        cls,
        model_dir: Path,
        *,
        backend: str = "auto",
        dtype: str = "auto",
        context_length: int | None = None,
        kv_bytes: int | None = None,
        num_blocks: int | None = None,
        max_running: int = 64,
        max_step_tokens: int = 512,
        threads: int | None = None,
    ) -> Self:
        """Load a model directory. Raises UnsupportedModel, UnsupportedAttention or ValueError (settings)."""
        if threads is not None:
            torch.set_num_threads(threads)
        chosen = choose_backend(backend)
        model = load_model(model_dir, choose_dtype(dtype), chosen, context_length, in_int8=dtype == INT8)
        limits = RunnerLimits(max_running=max_running, max_step_tokens=max_step_tokens)
        budget = PoolBudget(num_blocks=num_blocks, pool_bytes=kv_bytes)
        return cls._within(budget, model_dir, model, chosen, limits)

    @classmethod
    def _within(
        cls,
        budget: PoolBudget,
        model_dir: Path,
        model: LoadedModel,
        backend: AttentionBackend,
        limits: RunnerLimits,
    ) -> Self:
        """The runner of a loaded model whose KV pool keeps within a budget."""
        bytes_per_block = sum(backend.bytes_per_block(spec) for spec in model.layer_specs)
        blocks = pool_blocks(bytes_per_block, limits.max_running, model.context_length, budget)
        revision = weights_revision(find_weight_files(model_dir))
        return cls(model, backend, limits, num_blocks=blocks, revision=revision)

    @property
    def num_blocks(self) -> int:
        return self.pool.num_blocks

    @property
    def batch_invariant(self) -> bool:
        """Known after `warm`; False before."""
        return self.backend.batch_invariant and self._probe is not None and self._probe.is_invariant

    def warm(self, progress: Progress = lambda done, total: None) -> ProbeReport:
        """Run every shape that a step can have, and find out whether rows depend on their batch."""
        self._probe = probe_model(
            self.model.module, self.limits.max_step_tokens, self.limits.max_running, progress
        )
        return self._probe

    def serve_constraints(self, vocabulary: Vocabulary) -> None:
        """From now on requests may have matchers over this vocabulary, whose size is the model's."""
        assert vocabulary.size == self.model.vocab_size
        self._masks = MaskFiller(vocabulary, max_rows=self.limits.max_running)

    @torch.inference_mode()
    def run(self, plan: StepPlan) -> StepResult:
        """Compute one step and sample where its chunks say so."""
        inputs = self._inputs(plan)
        self._pending.forget()
        with ConstrainedRows(plan.chunks, self._masks, self.model.vocab_size) as constrained:
            tokens = self._sampler.sample(self._logits(inputs), inputs.sampling, constrained.masks())
            outcomes = outcomes_of(plan.chunks, tokens, constrained.num_usable)
            constrained.advance(outcomes)
        result = step_result(plan.chunks, outcomes)
        self._add_prompt_logprobs(result)
        self._pending.remember(plan, result)
        return result

    def _add_prompt_logprobs(self, result: StepResult) -> None:
        for index, found in self._prompt_scores.items():
            if found is None:
                result.sampled[index] = SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS)
            else:
                result.prompt_logprobs[index] = found

    @torch.inference_mode()
    def run_logits(self, plan: StepPlan) -> Tensor:
        """The step without its sampling: fp32 logits [chunks that sample, vocab]. For tests."""
        return self._logits(self._inputs(plan))

    def _inputs(self, plan: StepPlan) -> StepInputs:
        self.pool.copy_blocks(plan.copies)
        token_ids = [self._pending.resolve(chunk) for chunk in plan.chunks]
        adjustments = self._adjustments.of_step(plan.chunks, token_ids)
        return build_inputs(plan.chunks, token_ids, adjustments, self.padded)

    def _states(self, inputs: StepInputs) -> Tensor:
        """Last hidden states [T, hidden], padding included."""
        step = PackedStep(self.backend, self.pool.layers, inputs.metadata)
        return hidden_states(self.model.module, inputs.token_ids, step)

    def _logits(self, inputs: StepInputs) -> Tensor:
        module, states = self.model.module, self._states(inputs)
        self._prompt_scores = score_prompts(module, states, inputs.chunks)
        if not len(inputs.sampled_rows):
            return states.new_empty(0, self.model.vocab_size, dtype=torch.float32)
        return logits_of_rows(module, states, inputs.sampled_rows)

    def description_fields(self) -> dict[str, Any]:
        """This room's part of the contract's Description; call it after `warm`."""
        return {
            "dtype": self.model.precision,
            "backend": self.backend.name,
            "batch_invariant": self.batch_invariant,
            "fingerprint": self.fingerprint(),
            "max_running": self.limits.max_running,
            "max_request_tokens": min(self.model.context_length, self.num_blocks * BLOCK_SIZE),
        }

    def fingerprint(self) -> str:
        return numerics_fingerprint(
            self.revision,
            self.model.module.config.to_dict(),
            dtype=self.model.precision,
            backend=self.backend.numerics,
            threads=torch.get_num_threads(),
            min_rows=self._probe.min_rows if self._probe else {},
        )
