"""What continuous batching, chunked prefill, paging and prefix sharing gain, on the real engine.

    make bench

A table on the terminal, a JSON file and plots in the folder named; the last line is one JSON object.
"""

import json
from pathlib import Path

from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

MAX_RUNNING, MAX_STEP_TOKENS = 128, 512
NUM_BLOCKS = 128 * 13 + 400
"""As many as any experiment needs: 128 decodes of 200 tokens, 4 of 8,191, or the memory of `batching`."""


def main() -> None:
    parser = model_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("var/bench"), help="folder of the results")
    args = parser.parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.real_engine import load_rehearsed
    from benchmarks.scheme.engine import Engine
    from benchmarks.scheme.experiments import Plan, claims, run_experiments, tables
    from benchmarks.scheme.plots import draw_all
    from benchmarks.scheme.progress import Progress

    limits = {"num_blocks": NUM_BLOCKS, "max_running": MAX_RUNNING, "max_step_tokens": MAX_STEP_TOKENS}
    runner = load_rehearsed(args.model_dir, args.dtype, args.threads, **limits)
    engine = Engine(runner, runner.model.vocab_size, runner.model.context_length)
    plan = Plan()
    with Progress(plan.num_ticks) as progress:
        results = run_experiments(engine, plan, progress)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "results.json").write_text(json.dumps({**results, "claims": claims(results)}, indent=2))
    print(tables(results))
    names = ["results.json", *(file.name for file in draw_all(results, args.out))]
    print(f"\nwritten to {args.out}: {', '.join(names)}")
    print(json.dumps(claims(results)))


if __name__ == "__main__":
    main()
