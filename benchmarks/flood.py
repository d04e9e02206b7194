"""Case 24 in full, on the real engine in process: one tenant keeps 64 requests in flight, another sends a
short one every second for a minute.

    python -m benchmarks.flood --threads 2

The last line is one JSON object, in milliseconds: the second tenant's median time to the first token alone
and beside the flood, its largest, the median step under the flood, and whether the bounds hold: twice the
median alone plus a median step for the median, five times that for the largest.
"""

import json
import sys
import threading
import time
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.loop_client import LoopClient, StepTimes
from benchmarks.model_options import model_parser
from inference_engine.contract.events import Delta, EngineMessage, Finished, Refused
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.environment import prepare_environment
from inference_engine.serving.collector import settle_collector

if TYPE_CHECKING:
    from inference_engine.execution.model_runner import ModelRunner

FLOOD, SINGLE = 1, 2
IN_FLIGHT = 64
FLOOD_PROMPTS = (24, 48, 96)
FLOOD_OUTPUTS = (96, 160, 256)
PROMPT, OUTPUT = 24, 8
LIMITS = {"num_blocks": 3_000, "max_running": 64, "max_step_tokens": 512}


def request(name: str, number: int, prompt: int, output: int) -> Generate:
    """Ids of their own for each, so that nothing is found in the prefix cache."""
    return Generate(
        request_id=f"{name}-{number}",
        prompt_ids=[100 + (number * 7_919 + 31 * position) % 40_000 for position in range(prompt)],
        sampling=SamplingParams(seed=number, temperature=0.8, max_tokens=output, ignore_eos=True),
        tenant_id=name,
    )


class Tenants:
    """Sends for both, and notes when the second one's first tokens come."""

    def __init__(self, runner: "ModelRunner") -> None:
        from benchmarks.real_engine import scheduler_for

        self.waits: list[float] = []
        self.is_flooding = False
        self._num_flood = 0
        self._sent_at: dict[str, float] = {}
        self._is_heard = threading.Event()
        self.steps = StepTimes(runner)
        self.client = LoopClient(scheduler_for(runner), self.steps, self._hear)
        for session in (FLOOD, SINGLE):
            self.client.open(session)

    def flood(self) -> None:
        self.is_flooding = True
        for _ in range(IN_FLIGHT):
            self._send_flood()

    def send_singles(self, count: int, first: int) -> list[float]:
        """One a second; seconds to their first tokens."""
        self.waits = []
        started = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, started + number - time.monotonic()))
            generate = request("single", first + number, PROMPT, OUTPUT)
            self._sent_at[generate.request_id] = time.monotonic()
            self.client.send(SINGLE, generate)
        while len(self.waits) < count and not self.client.deaths:
            time.sleep(0.05)
        return self.waits

    def _send_flood(self) -> None:
        number = self._num_flood = self._num_flood + 1
        prompt = FLOOD_PROMPTS[number % len(FLOOD_PROMPTS)]
        output = FLOOD_OUTPUTS[number % len(FLOOD_OUTPUTS)]
        self.client.send(FLOOD, request("flood", number, prompt, output))

    def _hear(self, session: int, message: EngineMessage) -> None:
        if session == SINGLE and isinstance(message, Delta):
            sent_at = self._sent_at.pop(message.request_id, None)
            if sent_at is not None:
                self.waits.append(time.monotonic() - sent_at)
        elif session == FLOOD and isinstance(message, Finished | Refused) and self.is_flooding:
            self._send_flood()


def measure(runner: "ModelRunner", seconds: int) -> dict[str, float | bool]:
    tenants = Tenants(runner)
    alone = tenants.send_singles(max(10, seconds // 3), first=0)
    tenants.flood()
    time.sleep(3.0)  # until the flood has filled every place
    tenants.steps.seconds.clear()
    beside = tenants.send_singles(seconds, first=1_000)
    step = median(tenants.steps.seconds)
    tenants.is_flooding = False
    tenants.client.stop()
    limit = 2 * median(alone) + step
    told = {
        "alone_median_ms": median(alone),
        "flood_median_ms": median(beside),
        "flood_max_ms": max(beside),
        "step_median_ms": step,
        "limit_ms": limit,
    }
    holds = median(beside) <= limit and max(beside) < 5 * limit
    return {**{name: round(value * 1e3, 2) for name, value in told.items()}, "holds": holds}


def main() -> int:
    parser = model_parser(__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    prepare_environment(args.threads)
    # Only now: OpenMP and oneDNN read their settings when torch is imported.
    from benchmarks.real_engine import load_warm

    runner = load_warm(args.model_dir, args.dtype, args.threads, **LIMITS)
    settle_collector()
    told = measure(runner, args.seconds)
    print(json.dumps(told))
    return 0 if told["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
