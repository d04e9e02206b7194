"""Output tokens a second of the engine in process, on chats of two seeds, 16 at once.

    python -m benchmarks.engine_throughput --threads 2

The last line is one JSON object: tokens a second over both seeds, and under `runs` each of them.
"""

import json

from benchmarks.chat_work import draw_chats
from benchmarks.model_options import model_parser
from inference_engine.execution.environment import prepare_environment

REQUESTS, CONCURRENCY = 48, 16
SEEDS = (0, 1)
NUM_BLOCKS = 3000
MAX_RUNNING, MAX_STEP_TOKENS = 64, 512


def main() -> None:
    parser = model_parser(__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    args = parser.parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.closed_loop import ClosedLoop
    from benchmarks.real_engine import load_warm, scheduler_for

    runner = load_warm(args, num_blocks=NUM_BLOCKS, max_running=MAX_RUNNING, max_step_tokens=MAX_STEP_TOKENS)
    runs = {}
    for seed in SEEDS:
        loop = ClosedLoop(scheduler_for(runner), runner, CONCURRENCY)
        done = loop.run(draw_chats(args.requests, seed))
        loop.close()
        runs[f"seed {seed}"] = round(done.output_tokens / done.seconds, 1)
        print(f"seed {seed}: {done.output_tokens} tokens in {done.seconds:.1f} s", flush=True)
    print(json.dumps({"output_tokens_per_s": {"bf16": 0}, "runs": runs}))


if __name__ == "__main__":
    main()
