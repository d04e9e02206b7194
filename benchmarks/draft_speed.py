"""What prompt-lookup drafts gain where the output copies: the same greedy requests with and without them.

    python -m benchmarks.draft_speed --threads 2

Outputs are compared token by token; runs take turns, medians count. The last line is one JSON object: times
faster, by the number of requests that run at once.
"""

import json
import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.model_options import clock_for, model_parser
from inference_engine.execution.environment import prepare_environment

NUM_REQUESTS = (1, 8)
NUM_DRAFTS = 8
MAX_TOKENS = 160
REPETITIONS = 3
LINES = """def area(width, height):
    return width * height

def volume(width, height, depth):
    return width * height * depth

def surface(width, height, depth):
    return 2 * (width * height + height * depth + width * depth)

""".splitlines(keepends=True)


def prompts(model_dir: Any, count: int) -> list[list[int]]:
    """A text three times over, so that the model goes on with it; the first line is another one in each."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    texts = ["".join(LINES[number % 3 :]) + "".join(LINES[: number % 3]) for number in range(count)]
    return [tokenizer.encode(text * 3).ids for text in texts]


def run(
    runner: Any, scheduler: Any, prompt_ids: list[list[int]], num_drafts: int, clock: Callable[[], float]
) -> tuple[float, list[list[int]], Any]:
    """(seconds from the first decode on, outputs, stats)"""
    from inference_engine.contract.requests import Generate
    from inference_engine.contract.sampling import SamplingParams

    for number, ids in enumerate(prompt_ids):
        sampling = SamplingParams(
            seed=0, temperature=0.0, max_tokens=MAX_TOKENS, ignore_eos=True, num_draft_tokens=num_drafts
        )
        scheduler.add(Generate(request_id=str(number), prompt_ids=ids, sampling=sampling, tenant_id="a"))
    outputs: dict[str, list[int]] = {str(number): [] for number in range(len(prompt_ids))}
    started: float | None = None
    while (plan := scheduler.plan()) is not None:
        if started is None and all(chunk.samples and chunk.start for chunk in plan.chunks):
            started = clock()
        before = clock()
        result = runner.run(plan)
        scheduler.observe_step(plan, clock() - before)
        for update in scheduler.apply(plan, result):
            outputs[update.request.request_id] += update.token_ids
    assert started is not None
    return clock() - started, list(outputs.values()), scheduler.stats()


def main() -> None:
    args = model_parser(__doc__).parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.real_engine import load_warm, scheduler_for

    runner = load_warm(args.model_dir, args.dtype, args.threads, num_blocks=512, max_running=64)
    scheduler = scheduler_for(runner, enable_prefix_cache=False)  # its cost model learns as it goes
    speedup, accepted = {}, {}
    for count in NUM_REQUESTS:
        ids = prompts(args.model_dir, count)
        times: dict[int, list[float]] = {0: [], NUM_DRAFTS: []}
        outputs = []
        for _ in range(REPETITIONS):
            for num_drafts, kept in times.items():
                seconds, tokens, stats = run(runner, scheduler, ids, num_drafts, clock_for(args.threads))
                kept.append(seconds)
                outputs.append(tokens)
        assert all(tokens == outputs[0] for tokens in outputs), "drafts changed the tokens"
        plain, drafted = statistics.median(times[0]), statistics.median(times[NUM_DRAFTS])
        speedup[count] = round(plain / drafted, 3)
        accepted[count] = round(stats.num_accepted_tokens / max(1, stats.num_drafted_tokens), 3)
        print(f"{count} at once: {plain:.3f} s, with drafts {drafted:.3f} s")
    print(json.dumps({"speedup": speedup, "accepted": accepted, "threads": args.threads}))


if __name__ == "__main__":
    main()
