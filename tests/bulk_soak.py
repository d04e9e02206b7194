"""GSM8K as one batch beside eight chats, then beside nothing but faults; each line answered and billed once.

    PYTHONPATH=.:platform:tests python tests/bulk_soak.py MODEL_DIR [--lines N] [--no-faults]

The chats alone give the gaps between their tokens when idle; beside the batch the 99th percentile must stay
within 1.5 times that. Then worker, Redis and engine are killed in turn. The last line is one JSON object.
"""

import argparse
import json
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from openai.types import Batch

from batch_client import BatchClient, as_jsonl, chat_line
from octavo_stack import ROOT, Stack
from operations.children import NICE_BESIDE_THE_ENGINE
from operations.redis_server import find_redis_server
from servers_of_tests import RedisServer, wait_until

QUESTIONS = ROOT.parent / "shared" / "data" / "gsm8k"
NUM_CHATS = 8
MAX_GAP_RATIO = 1.5
IDLE_S = 20.0
ENGINE = ("--num-blocks", "3000", "--max-running", "64")
FAKE = ("--fake", "--fake-step-ms", "8", "--fake-token-us", "300")
"""Steps that take as long as their tokens make them, about as the real engine's on two cores."""


class Chats:
    """Streams that go on and on until told to stop; `gaps` in seconds, of tokens of one stream."""

    def __init__(self, stack: Stack, count: int) -> None:
        self.gaps: list[float] = []
        self._stack = stack
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._talk, args=(n,), daemon=True) for n in range(count)]

    def __enter__(self) -> "Chats":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _talk(self, number: int) -> None:
        text = f"Tell me story {number}, as long as you can."
        body = chat_line("", self._stack.model, text=text, max_tokens=300, ignore_eos=True)["body"]
        headers = {"authorization": f"Bearer {self._stack.keys['alice']}"}
        with httpx.Client(base_url=self._stack.base_url, headers=headers, timeout=60) as http:
            while not self._stop.is_set():
                self._listen(http, body)

    def _listen(self, http: httpx.Client, body: dict[str, Any]) -> None:
        """The wait for a first token is no gap."""
        with http.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
            last = None
            for line in answer.iter_lines():
                if '"content":"' in line and '"role"' not in line:
                    now = time.perf_counter()
                    if last is not None:
                        self.gaps.append(now - last)
                    last = now
                if self._stop.is_set():
                    return


def percentile(gaps: list[float], percent: int) -> float:
    """In milliseconds."""
    return round(1000 * statistics.quantiles(gaps, n=100)[percent - 1], 2)


def questions(count: int, model: str, max_tokens: int) -> list[dict[str, Any]]:
    (path,) = sorted(QUESTIONS.rglob("test*.jsonl"))
    texts = [json.loads(line)["question"] for line in path.read_text().splitlines()][:count]
    return [chat_line(f"q{n}", model, text=text, max_tokens=max_tokens) for n, text in enumerate(texts)]


def beside(stack: Stack, client: BatchClient, batch: Batch, seconds: float) -> dict[str, Any]:
    """Chats beside a batch that has begun."""
    done_before = done(client, batch)
    with Chats(stack, NUM_CHATS) as chats:
        time.sleep(seconds)
        lines = done(client, batch) - done_before
    return {**figures(chats.gaps), "lines_per_s": round(lines / seconds, 2)}


def figures(gaps: list[float]) -> dict[str, Any]:
    return {"num_gaps": len(gaps), "p50_ms": percentile(gaps, 50), "p99_ms": percentile(gaps, 99)}


def done(client: BatchClient, batch: Batch) -> int:
    counts = client.api.batches.retrieve(batch.id).request_counts
    return 0 if counts is None else counts.completed + counts.failed


def faults(stack: Stack, flags: tuple[str, ...]) -> dict[str, Callable[[], None]]:
    def engine() -> None:
        stack.signal("engine", signal.SIGKILL)
        stack.start_engine(*flags)

    return {"worker": lambda: stack.kill_bulk("worker"), "redis": stack.redis.restart, "engine": engine}


def run_faults(client: BatchClient, batch: Batch, num_lines: int, flags: tuple[str, ...]) -> list[str]:
    """One after the other, as the batch goes on."""
    begun, things = done(client, batch), faults(client.stack, flags)
    for number, (name, break_it) in enumerate(things.items(), start=1):
        due = begun + number * (num_lines - begun) // 4
        wait_until(lambda due=due: done(client, batch) >= due, f"{due} lines", 1800)
        print(f"{done(client, batch)} lines done; now {name} is killed", flush=True)
        break_it()
    return list(things)


def check(client: BatchClient, batch: Batch, lines: list[dict[str, Any]]) -> dict[str, Any]:
    batch = client.ended(batch, 3600)
    results = client.results(batch.output_file_id)
    usages = [result["response"]["body"]["usage"] for result in results]
    spent = (
        sum(usage["prompt_tokens"] for usage in usages),
        sum(usage["completion_tokens"] for usage in usages),
    )
    wait_until(lambda: client.billed(batch) >= spent, "the ledger has them all", 120)
    names = [result["custom_id"] for result in results]
    return {
        "status": batch.status,
        "lines": len(lines),
        "answered": len(names),
        "each_once_in_order": names == [line["custom_id"] for line in lines],
        "tokens": spent,
        "billed": client.billed(batch),
    }


def soak(stack: Stack, options: argparse.Namespace) -> dict[str, Any]:
    client = BatchClient(stack, "bob")
    report: dict[str, Any] = {}
    with Chats(stack, NUM_CHATS) as chats:
        time.sleep(options.seconds)
    report["idle"] = figures(chats.gaps)
    lines = questions(options.lines, stack.model, options.max_tokens)
    batch = client.begun(client.start_file(as_jsonl(lines)), 1)
    report["beside_batch"] = beside(stack, client, batch, options.seconds)
    report["gap_ratio"] = round(report["beside_batch"]["p99_ms"] / report["idle"]["p99_ms"], 2)
    print(json.dumps(report), flush=True)
    if not options.no_faults:
        report["killed"] = run_faults(client, batch, len(lines), engine_flags(options))
    report["batch"] = check(client, batch, lines)
    return report


def engine_flags(options: argparse.Namespace) -> tuple[str, ...]:
    return (*ENGINE, *FAKE) if options.fake else ENGINE


def is_good(report: dict[str, Any]) -> bool:
    batch = report["batch"]
    is_exact = batch["each_once_in_order"] and batch["billed"] == batch["tokens"]
    return bool(is_exact and batch["status"] == "completed" and report["gap_ratio"] <= MAX_GAP_RATIO)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("--lines", type=int, default=1319)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=IDLE_S, help="of chats, alone and beside the batch")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument(
        "--fake", action="store_true", help="an engine that only waits as long as one would work"
    )
    options = parser.parse_args()
    server = find_redis_server()
    assert server is not None
    with Stack.opened(server, options.model_dir, nice=NICE_BESIDE_THE_ENGINE) as stack:
        stack.redis = RedisServer(server, stack.home, durable=True, nice=stack.nice)
        stack.prepare()
        stack.start_engine(*engine_flags(options))
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.start_bulk()
        stack.wait_ready(300)
        report = soak(stack, options)
    print(json.dumps(report))
    return 0 if is_good(report) else 1


if __name__ == "__main__":
    sys.exit(main())
