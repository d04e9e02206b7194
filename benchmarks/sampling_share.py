"""What sampling costs: 64 decodes of mixed settings, behind prose and behind random ids (flat distributions).

    python -m benchmarks.sampling_share --threads 2

Everything of a step but the forward pass counts as sampling: penalties and their histories, filters, draws,
logprobs, and putting rows and results together. The last line is one JSON object: the share of the step.
"""

import json
import statistics
from typing import Any

from benchmarks.model_options import clock_for, model_parser
from inference_engine.execution.environment import prepare_environment

NUM_ROWS = 64
PROMPT_TOKENS = 200
NUM_STEPS = 16
PROSE = """The lighthouse keeper had counted ships for forty years before one of them counted him. It was a
grey morning, and the fog lay so thick upon the water that the bell had been ringing since midnight. He wrote
the date in his book, then the wind, then the height of the tide, as his father had done before him. """
PENALTIES = {"frequency_penalty": 0.2, "presence_penalty": 0.1, "repetition_penalty": 1.1}
MIXED: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 40},
    {"temperature": 1.0, "top_p": 0.9},
    {"temperature": 1.3, "top_p": 0.99},
    {"temperature": 1.0, "top_k": 700, "top_p": 0.8},
    {"temperature": 0.8, "min_p": 0.05},
    {"temperature": 0.9, "top_k": 20, "top_p": 0.95, "logprobs": 5},
]


def measure(runner: Any, prompt_ids: list[int]) -> dict[str, float]:
    """Median milliseconds of a step and of its forward pass."""
    from benchmarks.real_engine import scheduler_for
    from inference_engine.contract.requests import Generate
    from inference_engine.contract.sampling import SamplingParams

    scheduler = scheduler_for(runner)
    for number in range(NUM_ROWS):
        mixed = MIXED[number % len(MIXED)] | PENALTIES
        sampling = SamplingParams(seed=number, max_tokens=400, ignore_eos=True, **mixed)
        prompt = prompt_ids[number : number + PROMPT_TOKENS]
        scheduler.add(Generate(request_id=str(number), prompt_ids=prompt, sampling=sampling, tenant_id="a"))
    steps: list[tuple[float, float]] = []
    while len(steps) < NUM_STEPS:
        plan = scheduler.plan()
        assert plan is not None
        started = runner.clock()
        result = runner.run(plan)
        seconds = runner.clock() - started
        scheduler.apply(plan, result)
        if plan.num_tokens == len(plan.chunks) == NUM_ROWS:
            steps.append((seconds, runner.forward_seconds))
    return {
        "step": statistics.median(step for step, _ in steps) * 1e3,
        "sampling": statistics.median(step - forward for step, forward in steps) * 1e3,
    }


def main() -> None:
    args = model_parser(__doc__).parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    import torch
    from tokenizers import Tokenizer

    from benchmarks.timed_runner import load_timed

    blocks = NUM_ROWS * 40
    runner = load_timed(args.model_dir, args.dtype, args.threads, num_blocks=blocks, max_running=NUM_ROWS)
    runner.clock = clock_for(args.threads)
    prose = Tokenizer.from_file(str(args.model_dir / "tokenizer.json")).encode(PROSE * 8).ids
    generator = torch.Generator().manual_seed(1)
    random_ids = torch.randint(1000, 40_000, (PROMPT_TOKENS + NUM_ROWS,), generator=generator).tolist()
    ms = {name: measure(runner, ids) for name, ids in (("prose", prose), ("random_ids", random_ids))}
    for name, times in ms.items():
        print(f"{name:12} step {times['step']:7.2f} ms   sampling {times['sampling']:6.2f} ms")
    shares = {name: round(times["sampling"] / times["step"], 4) for name, times in ms.items()}
    print(json.dumps({"sampling_share": shares, "ms": ms, "rows": NUM_ROWS, "threads": args.threads}))


if __name__ == "__main__":
    main()
