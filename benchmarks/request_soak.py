"""Many requests through the real loop, desk and scheduler with the fake runner: nothing may be left of them.

    python -m benchmarks.request_soak --requests 100000

Of several tenants, classes and sessions; some in groups, with deadlines or drafts, aborted, refused, left
behind by a session that closes. The last line is one JSON object: requests, containers that are larger after
them than after the first tenth (`left`), and resident megabytes then and in the end. Exits with 1 if any is.
"""

import argparse
import json
import random
import resource
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.container_sizes import container_sizes
from benchmarks.loop_client import LoopClient
from inference_engine.contract.events import Delta, EngineMessage, Finished, Refused
from inference_engine.contract.requests import Abort, Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.simulation.fake_runner import FakeRunner

NUM_SESSIONS = 4
IN_FLIGHT = 192
VOCAB_SIZE = 500
NUM_BLOCKS = 600
CONFIG = SchedulerConfig(
    num_blocks=NUM_BLOCKS,
    max_running=64,
    context_length=400,
    vocab_size=VOCAB_SIZE,
    cache_secret=b"soak",
    max_waiting=150,
)
BOUNDED = ("_ended", "_lately", "_free", "_cached", "_block_by_hash", "_hash_by_block")
"""By a number of endings or by two seconds of them, or by the number of blocks: they fill up and stay so."""


class RequestSoak:
    def __init__(self) -> None:
        self._draw = random.Random(1)  # noqa: S311
        self._lock = threading.Condition()
        self._sent = 0
        self._session_of: dict[str, int] = {}
        self.endings: Counter[str] = Counter()
        scheduler = Scheduler(CONFIG)
        runner = FakeRunner(num_blocks=NUM_BLOCKS, vocab_size=VOCAB_SIZE)
        self.client = LoopClient(scheduler, runner, self._hear)
        self._sessions = list(range(1, NUM_SESSIONS + 1))
        for session in self._sessions:
            self.client.open(session)

    def run(self, num_requests: int) -> None:
        """Send so many and wait until none is left."""
        for _ in range(num_requests):
            with self._lock:
                self._lock.wait_for(lambda: len(self._session_of) < IN_FLIGHT or self.client.deaths)
            self._send()
            if self._draw.random() < 0.0005:
                self._replace_session()
        with self._lock:
            self._lock.wait_for(lambda: not self._session_of or self.client.deaths)
        while self.client.loop.progress().has_work and not self.client.deaths:
            threading.Event().wait(0.01)

    def _send(self) -> None:
        draw, self._sent = self._draw, self._sent + 1
        session = draw.choice(self._sessions)
        generate = self._generate()
        with self._lock:
            self._session_of[generate.request_id] = session
        self.client.send(session, generate)

    def _generate(self) -> Generate:
        draw, number = self._draw, self._sent
        return Generate(
            request_id=f"r{number}",
            prompt_ids=[draw.randrange(VOCAB_SIZE) for _ in range(draw.choice((4, 20, 60)))],
            sampling=SamplingParams(
                seed=number, max_tokens=draw.randint(1, 24), num_draft_tokens=draw.choice((0, 0, 4))
            ),
            tenant_id=f"t{draw.randrange(20)}",
            key_id=draw.choice("kl"),
            group_id=f"g{number // 3}" if number // 3 % 4 == 0 else "",
            service_class=draw.choice(list(ServiceClass)),
            deadline_ms=draw.choice((None, None, 600_000, 40)),
        )

    def _replace_session(self) -> None:
        """One closes with all that came over it; a new one opens."""
        gone = self._sessions.pop(0)
        self.client.close(gone)
        with self._lock:
            for request_id in [each for each, session in self._session_of.items() if session == gone]:
                self._end(request_id, "left behind")
        self._sessions.append(gone + NUM_SESSIONS)
        self.client.open(self._sessions[-1])

    def _hear(self, session: int, message: EngineMessage) -> None:
        with self._lock:
            if isinstance(message, Finished | Refused):
                self._end(message.request_id, message.code.value if message.code else "finished")
            elif isinstance(message, Delta) and hash(message.request_id) % 40 == 0:
                self.client.send(session, Abort(request_id=message.request_id))

    def _end(self, request_id: str, how: str) -> None:
        if self._session_of.pop(request_id, None) is not None:
            self.endings[how] += 1
            self._lock.notify()


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def soak(num_requests: int) -> dict[str, object]:
    run = RequestSoak()
    run.run(num_requests // 10)
    before, mb_before = container_sizes(run.client.loop), resident_mb()
    run.run(num_requests - num_requests // 10)
    after = container_sizes(run.client.loop)
    run.client.stop()
    left = {
        name: size
        for name, size in after.items()
        if size > before.get(name, 0) and not name.endswith(BOUNDED)
    }
    return {
        "requests": num_requests,
        "left": left,
        "rss_mb": [round(mb_before, 1), round(resident_mb(), 1)],
        "endings": dict(run.endings),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Requests through the loop, and what is left of them.")
    parser.add_argument("--requests", type=int, default=100_000)
    told = soak(parser.parse_args(arguments).requests)
    print(json.dumps(told))
    return 1 if told["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
