"""What the loop costs around the forward pass of a decode step: its turn, in process, all rows decoding.

    python -m benchmarks.loop_share --rows 16

A turn is plan, inputs, forward pass, sampling, apply and emit. The last line is one JSON object: medians in
milliseconds, and the share of a turn that is not the forward pass.
"""

import argparse
import json
import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.chat_work import ChatRequest
from benchmarks.closed_loop import ClosedLoop
from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

if TYPE_CHECKING:
    from benchmarks.timed_runner import TurnsRunner

PROMPT, OUTPUTS = 150, 100
"""Tokens of every request: a row sees about 200 on the way."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds of one turn of the loop."""

    forward: float
    in_runner: float
    """Inputs and sampling."""
    in_loop: float
    """Plan, apply, emit: from the end of one step to the begin of the next."""

    @property
    def share(self) -> float:
        return 1 - self.forward / (self.forward + self.in_runner + self.in_loop)


def arguments() -> argparse.Namespace:
    parser = model_parser(__doc__)
    parser.add_argument("--rows", type=int, default=16)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.timed_runner import load_turns

    limits = {"num_blocks": 40 * args.rows, "max_running": args.rows, "max_step_tokens": 512}
    turns = measure(load_turns(args.model_dir, args.dtype, args.threads, **limits), args.rows)
    parts = ("forward", "in_runner", "in_loop")
    ms = {part: round(1e3 * statistics.median(getattr(turn, part) for turn in turns), 3) for part in parts}
    share = round(statistics.median(turn.share for turn in turns), 4)
    print(
        json.dumps(
            {"share": share, "ms": ms, "rows": args.rows, "turns": len(turns), "threads": args.threads}
        )
    )


def measure(runner: "TurnsRunner", num_rows: int) -> list[Turn]:
    """The turns whose step, and the one after it, were decodes of all rows."""
    from benchmarks.real_engine import scheduler_for

    loop = ClosedLoop(scheduler_for(runner), runner, num_rows)
    try:
        loop.run([ChatRequest([1000 + row] * PROMPT, OUTPUTS) for row in range(num_rows)])
    finally:
        loop.close()
    return [
        Turn(step.forward, step.ended - step.started - step.forward, following.started - step.ended)
        for step, following in pairwise(runner.steps)
        if step.num_decodes == following.num_decodes == num_rows
    ]


if __name__ == "__main__":
    main()
