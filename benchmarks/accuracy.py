"""What int8 costs in accuracy: perplexity of a text, and how often the most likely next token is the same.

    make bench-accuracy ARGS="--text FILE"

bf16 and int8 read the same text, in pieces of 512 tokens that know nothing of one another. The last line is
one JSON object.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

if TYPE_CHECKING:
    from torch import Tensor

    from inference_engine.execution.model_runner import ModelRunner

PIECE = 512
NUM_BLOCKS = 64
TEXT = Path("../shared/data/vllm_benchmarks/sonnet.txt")


def main() -> None:
    parser = model_parser(__doc__, dtype=None)
    parser.add_argument("--text", type=Path, default=TEXT)
    args = parser.parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from tokenizers import Tokenizer

    from inference_engine.execution.model_runner import ModelRunner

    tokenizer = Tokenizer.from_file(str(args.model_dir / "tokenizer.json"))
    ids = tokenizer.encode(args.text.read_text(), add_special_tokens=False).ids
    scores = {}
    for dtype in ("bfloat16", "int8"):
        runner = ModelRunner.load(args.model_dir, dtype=dtype, threads=args.threads, num_blocks=NUM_BLOCKS)
        scores[dtype] = read_text(runner, ids)
    agreement = (scores["bfloat16"][1] == scores["int8"][1]).float().mean().item()
    perplexity = {name: round(math.exp(-mean), 3) for name, (mean, _) in scores.items()}
    print(f"{len(ids)} tokens; perplexity " + ", ".join(f"{name} {p}" for name, p in perplexity.items()))
    print(json.dumps({"perplexity": perplexity, "greedy_agreement": round(agreement, 4)}))


def read_text(runner: "ModelRunner", ids: list[int]) -> "tuple[float, Tensor]":
    """Mean log-probability of every token but each piece's first, and the most likely tokens int64 [N]."""
    import torch

    chosen, logprobs = [], []
    for start in range(0, len(ids) - 1, PIECE):
        piece = torch.tensor(ids[start : start + PIECE])
        scores = _logits(runner, piece)[:-1].log_softmax(-1)
        chosen.append(scores.argmax(-1))
        logprobs.append(scores.gather(1, piece[1:, None]))
    return torch.cat(logprobs).mean().item(), torch.cat(chosen)


def _logits(runner: "ModelRunner", piece: "Tensor") -> "Tensor":
    """fp32 [tokens, vocabulary]"""
    import torch

    from inference_engine.execution.attention.metadata import build_metadata
    from inference_engine.execution.forward.packed_forward import hidden_states, logits_of_rows
    from inference_engine.execution.forward.packed_step import PackedStep

    metadata = build_metadata([0], [len(piece)], [list(range(NUM_BLOCKS))])
    with torch.inference_mode():
        step = PackedStep(runner.backend, runner.pool.layers, metadata)
        states = hidden_states(runner.model.module, piece, step)
        return logits_of_rows(runner.model.module, states, torch.arange(len(piece)))


if __name__ == "__main__":
    main()
