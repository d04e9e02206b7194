"""Output tokens a second of the engine in process, on chats of two seeds, 16 at once.

    python -m benchmarks.engine_throughput --threads 2

The last line is one JSON object: tokens a second over both seeds, and under `runs` each of them.
"""

import json
from typing import TYPE_CHECKING

from benchmarks.chat_work import ChatRequest, draw_chats
from benchmarks.closed_loop import ClosedLoop, Throughput
from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

if TYPE_CHECKING:
    from inference_engine.execution.model_runner import ModelRunner

NAMES = {"bfloat16": "bf16", "int8": "int8"}
REQUESTS, CONCURRENCY = 48, 16
SEEDS = (0, 1)
LIMITS = {"num_blocks": 3000, "max_running": 64, "max_step_tokens": 512}


def main() -> None:
    parser = model_parser(__doc__, dtype=None)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--dtypes", nargs="+", default=list(NAMES), choices=list(NAMES))
    args = parser.parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.real_engine import load_warm

    runners = {
        NAMES[dtype]: load_warm(args.model_dir, dtype, args.threads, **LIMITS) for dtype in args.dtypes
    }
    runs: dict[str, list[Throughput]] = {name: [] for name in runners}
    for seed in SEEDS:
        for name, runner in runners.items():  # in turns, so that all meet the same neighbours
            done = measure(runner, draw_chats(args.requests, seed))
            runs[name].append(done)
            print(f"seed {seed} {name}: {done.output_tokens} tokens in {done.seconds:.1f} s", flush=True)
    together = {name: rate(done) for name, done in runs.items()}
    by_seed = {name: [rate([each]) for each in done] for name, done in runs.items()}
    print(json.dumps({"output_tokens_per_s": together, "by_seed": by_seed, "threads": args.threads}))


def measure(runner: "ModelRunner", work: list[ChatRequest]) -> Throughput:
    from benchmarks.real_engine import scheduler_for

    loop = ClosedLoop(scheduler_for(runner), runner, CONCURRENCY)
    try:
        return loop.run(work)
    finally:
        loop.close()


def rate(runs: list[Throughput]) -> float:
    return round(sum(run.output_tokens for run in runs) / sum(run.seconds for run in runs), 1)


if __name__ == "__main__":
    main()
