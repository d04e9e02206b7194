"""What batch invariance costs: steps of the engine against the same engine at exactly the rows there are.

    python -m benchmarks.invariance_cost --threads 2

Where every product is our own nothing is padded, and the second figure says what padding to row buckets
would cost, as it does where oneDNN multiplies. Attention has nothing to be switched off: a row's keys and
values are walked through by one thread in spans of 32 positions, beginning at absolute places as well as
anywhere else. Steps take turns and each is the minimum of its repetitions. The last line is one JSON object:
how much longer than exactly those rows a step is, by their number, 0.01 for 1 %.
"""

import json
from collections.abc import Callable
from typing import Any

from benchmarks.model_options import clock_for, model_parser
from inference_engine.execution.environment import prepare_environment

ROWS = (2, 4, 8, 16, 33, 64, 65, 100, 129, 200, 257)
REPETITIONS = 15


def main() -> None:
    args = model_parser(__doc__).parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.step_floor import Shape, fastest, load_runner, step_plan
    from inference_engine.execution.products.row_buckets import exactly, row_bucket

    runner = load_runner(args.model_dir, args.dtype, args.threads)
    own = runner.padded
    cost: dict[str, dict[int, float]] = {"engine": {}, "row_buckets": {}}
    for rows in ROWS:
        shape = Shape(rows) if rows <= 64 else Shape(16, rows - 16)
        plan = step_plan(shape, runner.model.vocab_size)

        def step_with(padded: Callable[[int], int], plan: Any = plan) -> Callable[[], Any]:
            def step() -> Any:
                runner.padded = padded
                return runner.run(plan)

            return step

        steps = [step_with(each) for each in (own, exactly, row_bucket)]
        engine, exact, bucket = fastest(steps, REPETITIONS, clock_for(args.threads))
        cost["engine"][rows] = round(engine / exact - 1, 4)
        cost["row_buckets"][rows] = round(bucket / exact - 1, 4)
        print(f"{rows:4} rows {engine * 1e3:8.2f} ms   exact {exact * 1e3:8.2f}   bucket {bucket * 1e3:8.2f}")
    worst = {name: max(each.values()) for name, each in cost.items()}
    print(json.dumps({**cost, "worst": worst, "threads": args.threads}))


if __name__ == "__main__":
    main()
