"""Our logits and tokens against the eager attention of transformers, in fp32, one text at a time."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine_harness import EngineHarness, RecordingRunner, Trace

LOGIT_TOLERANCE = 1e-3
TIE = 2 * LOGIT_TOLERANCE
"""Where the reference's two best logits are closer than this, either is a right greedy choice."""
TEXT_LENGTHS = (1, 2, 16, 17, 50, 90)


def runner_of(folder: Path, backend: str) -> RecordingRunner:
    return RecordingRunner.load(
        folder, backend=backend, dtype="float32", num_blocks=128, max_running=8, max_step_tokens=64
    )


def reference_of(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@torch.inference_mode()
def reference_logits(reference: Any, trace: Trace) -> Tensor:
    """fp32 [sampled tokens, vocab], the whole sequence in one forward pass."""
    prompt = trace.request.prompt_ids
    ids = torch.tensor([prompt + trace.token_ids])
    logits: Tensor = reference(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
    return logits


def check_against(reference: Any, runner: RecordingRunner, num_outputs: int) -> None:
    """Several texts at once through the engine; each position that was sampled must be the reference's."""
    harness = EngineHarness(runner, prefill_budget=24)
    vocab_size = runner.model.vocab_size
    texts = [[(7919 * i * i + 31 * n + i) % vocab_size for i in range(n)] for n in TEXT_LENGTHS]
    traces = [harness.add(text, max_tokens=num_outputs) for text in texts]
    harness.run()
    for trace in traces:
        expected = reference_logits(reference, trace)
        assert (trace.logits - expected).abs().max().item() <= LOGIT_TOLERANCE
        best = expected.topk(2, dim=-1)
        is_clear = best.values[:, 0] - best.values[:, 1] >= TIE
        chosen = torch.tensor(trace.token_ids)
        assert torch.equal(chosen[is_clear], best.indices[is_clear, 0])
    assert len({token for trace in traces for token in trace.token_ids}) >= 10
