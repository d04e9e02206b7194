"""A batch alone against the same requests handed straight to the same engine: output tokens a second of both.

    PYTHONPATH=.:platform:tests python tests/bulk_speed.py MODEL_DIR [--lines N] [--rounds N]

In turns, so that both meet the same neighbours. A batch counts from its first to its last line. The last line
is one JSON object.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from openai.types import Batch

from batch_client import BatchClient, as_jsonl, chat_line
from bulk_soak import ENGINE, questions
from fleet.session import EngineSession, SessionOptions
from inference_engine.contract.events import Delta
from inference_engine.contract.registry import ReplicaRecord, ReplicaState
from inference_engine.contract.requests import Generate, ServiceClass
from inference_engine.contract.sampling import SamplingParams
from inference_engine.contract.wire import PROTOCOL_VERSION
from octavo_stack import Stack
from operations.children import NICE_BESIDE_THE_ENGINE
from operations.redis_server import find_redis_server
from text.model_text import ModelText

POLL_S, SELDOM_S = 0.5, 3.0
"""Asking costs the machine: at 20 ms the batch had 0.68 of the engine's speed instead of 0.88."""
IN_FLIGHT = 200
"""As many as two chunks have."""
TOKENS_PER_DELTA = 32
"""As many as a worker asks for (gateway/runs/run.py)."""


async def straight(address: str, lines: list[dict[str, Any]], max_tokens: int) -> float:
    """Output tokens a second of the engine itself: prompts are token ids before the clock runs."""
    record = ReplicaRecord(
        replica_id="engine",
        boot_id="",
        address=address,
        model="",
        state=ReplicaState.READY,
        protocol_version=PROTOCOL_VERSION,
    )
    session = EngineSession(record, SessionOptions())
    await session.open()
    assert session.description is not None
    text = ModelText.from_description(session.description)
    prompts = [await text.render_chat(line["body"]["messages"]) for line in lines]
    places = asyncio.Semaphore(IN_FLIGHT)
    began = time.perf_counter()
    counts = await asyncio.gather(
        *(_one(session, places, n, ids, max_tokens) for n, ids in enumerate(prompts))
    )
    seconds = time.perf_counter() - began
    await session.close("done")
    return sum(counts) / seconds


async def _one(
    session: EngineSession, places: asyncio.Semaphore, number: int, ids: list[int], max_tokens: int
) -> int:
    message = Generate(
        request_id=f"straight-{number}-{time.perf_counter_ns()}",
        prompt_ids=ids,
        sampling=SamplingParams(seed=number, max_tokens=max_tokens, ignore_eos=True),
        tenant_id="0",
        key_id="k",
        service_class=ServiceClass.BULK,
        tokens_per_delta=TOKENS_PER_DELTA,
    )
    async with places:
        events = session.generate(message)
        return sum([len(event.token_ids) async for event in events if type(event) is Delta])


def batched(client: BatchClient, lines: list[dict[str, Any]], max_tokens: int) -> float:
    batch = client.start_file(as_jsonl(lines))
    began = None
    while batch.status in ("validating", "in_progress"):
        if began is None and batch.status == "in_progress":
            began = time.perf_counter()
        time.sleep(POLL_S if is_near_an_end(batch) else SELDOM_S)
        batch = client.api.batches.retrieve(batch.id)
    assert began is not None
    seconds = time.perf_counter() - began
    batch = client.ended(batch)
    assert batch.request_counts is not None
    assert batch.request_counts.completed == len(lines), batch
    return len(lines) * max_tokens / seconds


def is_near_an_end(batch: Batch) -> bool:
    counts = batch.request_counts
    return counts is None or not counts.total or counts.completed > 0.9 * counts.total


def warm_up(client: BatchClient) -> None:
    """So many chunks that every process of the worker has met the engine."""
    batched(client, [chat_line(str(n), client.model, ignore_eos=True, max_tokens=2) for n in range(400)], 2)


def measure(stack: Stack, options: argparse.Namespace) -> dict[str, Any]:
    os.nice(stack.nice)  # whoever asks is no more urgent than whoever works for it
    client, address = BatchClient(stack), f"unix:{stack.home / 'engine'}.sock"
    lines = questions(options.lines, stack.model, options.max_tokens)
    for line in lines:
        line["body"]["ignore_eos"] = True
    warm_up(client)
    rates: dict[str, list[float]] = {"straight": [], "batch": []}
    for _ in range(options.rounds):
        rates["straight"].append(asyncio.run(straight(address, lines, options.max_tokens)))
        rates["batch"].append(batched(client, lines, options.max_tokens))
        print(json.dumps({name: round(found[-1]) for name, found in rates.items()}), flush=True)
    medians = {name: round(statistics.median(found), 1) for name, found in rates.items()}
    return {"output_tokens_per_s": medians, "ratio": round(medians["batch"] / medians["straight"], 3)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("--lines", type=int, default=600)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2, help="of both in turn, a minute or two each")
    parser.add_argument("--fake", action="store_true", help="an engine that costs nothing, to try this out")
    options = parser.parse_args()
    server = find_redis_server()
    assert server is not None
    with Stack.opened(server, options.model_dir, nice=NICE_BESIDE_THE_ENGINE) as stack:
        stack.prepare()
        stack.start_engine(*ENGINE, "--no-prefix-cache", *(["--fake"] if options.fake else []))
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.start_bulk()
        stack.wait_ready(300)
        report = measure(stack, options)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
    sys.exit(main())
