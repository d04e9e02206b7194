"""What batch invariance costs: steps of the engine, against the same engine without the padding of rows.

    python -m benchmarks.invariance_cost --threads 2

Attention has nothing to be switched off: a row's keys and values are walked through by one thread in spans of
32 absolute positions, as they would be with spans that begin anywhere else. Steps take turns and each is the
minimum of its repetitions. The last line is one JSON object: how much longer a step is, by its number of
rows, 0.01 for 1 %.
"""

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

ROWS = (2, 4, 8, 16, 33, 64, 65, 100, 129, 200, 257)
REPETITIONS = 25


def without_padding(act: Callable[[], Any]) -> Callable[[], Any]:
    """The same at exactly the rows that there are."""

    def exact() -> Any:
        with (
            patch("inference_engine.execution.step_inputs.row_bucket", lambda rows: rows),
            patch("inference_engine.execution.packed_forward.row_bucket", lambda rows: rows),
        ):
            return act()

    return exact


def main() -> None:
    args = model_parser(__doc__).parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.step_floor import Shape, fastest, load_runner, step_plan

    runner = load_runner(args.model_dir, args.dtype, args.threads)
    cost = {}
    for rows in ROWS:
        shape = Shape(rows) if rows <= 64 else Shape(16, rows - 16)
        plan = step_plan(shape, runner.model.vocab_size)

        def step() -> Any:
            return runner.run(plan)  # noqa: B023

        padded, exact = fastest([step, without_padding(step)], REPETITIONS)
        cost[rows] = round(padded / exact - 1, 4)
        print(f"{rows:4} rows {padded * 1e3:8.2f} ms   exact {exact * 1e3:8.2f} ms   {cost[rows]:+.2%}")
    print(json.dumps({"cost": cost, "worst": max(cost.values()), "threads": args.threads}))


if __name__ == "__main__":
    main()
