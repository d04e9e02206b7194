"""Steps of the engine against their floor: a bare loop over the model's own packed matrices in the same run.

    python -m benchmarks.engine_steps --threads 2

The last line is one JSON object: the ratios, and under `ms` the times that they are made of.
"""

import argparse
import json

from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

REPETITIONS = 15


def arguments() -> argparse.Namespace:
    parser = model_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="of which the minimum counts")
    parser.add_argument("--only", nargs="*", default=None, help="names of steps; all without it")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.step_floor import SHAPES, load_runner, measure

    runner = load_runner(args.model_dir, args.dtype, args.threads)
    ms: dict[str, dict[str, float]] = {}
    for name in args.only or SHAPES:
        step, floor = measure(runner, SHAPES[name], args.repetitions)
        ms[name] = {"step": round(step * 1e3, 2), "floor": round(floor * 1e3, 2)}
        print(f"{name:12} {step * 1e3:8.2f} ms   floor {floor * 1e3:8.2f} ms   {step / floor:5.2f}")
    ratios = {name: round(pair["step"] / pair["floor"], 3) for name, pair in ms.items()}
    print(json.dumps({**ratios, "ms": ms, "threads": args.threads}))


if __name__ == "__main__":
    main()
