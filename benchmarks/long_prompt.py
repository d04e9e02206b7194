"""What a long prompt does to those who were there first, and to short ones that come after it.

    make bench-long ARGS="--key KEY"

While 16 streams decode, a prompt of 900 tokens arrives and four short ones right behind it. One JSON line:
the gaps of the 16 while the long prompt was read, and who got a first token when. Every figure is from one
run, so the ratios mean something on a noisy machine as well. The engine needs places for all 21.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from typing import Any

import aiohttp

from benchmarks.http_streams import TOKEN_IDS, Stream, percentiles_ms, run_stream

NUM_DECODING, NUM_SHORT = 16, 4
SHORT_PROMPT, LONG_PROMPT = 16, 900
DECODED = 160
POLL_S = 0.005


def draw_stream(draw: random.Random, num_prompt: int, max_tokens: int) -> Stream:
    return Stream([draw.randint(*TOKEN_IDS) for _ in range(num_prompt)], max_tokens)


async def measure(url: str, key: str, model: str, seed: int, timeout_s: float) -> dict[str, Any]:
    draw = random.Random(seed)  # noqa: S311
    decoding = [draw_stream(draw, SHORT_PROMPT, DECODED) for _ in range(NUM_DECODING)]
    long = draw_stream(draw, LONG_PROMPT, 4)
    short = [draw_stream(draw, SHORT_PROMPT, 4) for _ in range(NUM_SHORT)]
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(
            headers=headers, timeout=timeout, connector=aiohttp.TCPConnector(limit=0)
        ) as session,
        asyncio.TaskGroup() as tasks,
    ):
        for stream in decoding:
            tasks.create_task(run_stream(session, url, model, stream))
        while any(len(stream.text_at) < 4 and not stream.error for stream in decoding):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        for stream in [long, *short]:
            tasks.create_task(run_stream(session, url, model, stream))
            await asyncio.sleep(POLL_S)
    return figures(decoding, long, short)


def figures(decoding: list[Stream], long: Stream, short: list[Stream]) -> dict[str, Any]:
    streams = [*decoding, long, *short]
    errors = sorted({stream.error for stream in streams if stream.error})
    if errors:
        return {"errors": errors[:3]}
    gaps = [gap for stream in decoding for gap in gaps_of(stream, long.sent_at, float("inf"))]
    during = [gap for stream in decoding for gap in gaps_of(stream, long.sent_at, long.text_at[0])]
    return {
        "errors": [],
        "gap_ms": percentiles_ms(gaps),
        "gap_ms_while_long_prompt_is_read": percentiles_ms(during),
        "p95_over_median": round(percentiles_ms(gaps)["p95"] / percentiles_ms(gaps)["p50"], 2),
        "long_ttft_ms": round(1000 * (long.text_at[0] - long.sent_at), 1),
        "short_ttft_ms": round(1000 * statistics.median(s.text_at[0] - s.sent_at for s in short), 1),
        "short_ones_that_started_first": sum(s.text_at[0] < long.text_at[0] for s in short),
    }


def gaps_of(stream: Stream, since: float, until: float) -> list[float]:
    """Gaps that end within [since, until]."""
    pairs = zip(stream.text_at, stream.text_at[1:], strict=False)
    return [after - before for before, after in pairs if since <= after <= until]


def main() -> None:
    parser = argparse.ArgumentParser(description="A long prompt beside 16 decoding streams.")
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--key", required=True)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--timeout", type=float, default=300)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.url, given.key, given.model, given.seed, given.timeout))))


if __name__ == "__main__":
    main()
