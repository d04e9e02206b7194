"""Many streams against a running server; one JSON line of figures.

    make bench-http ARGS="--key KEY --concurrency 16"

Prompts are random token ids and outputs end at a given length, so that the same seed is the same work for
every server. Tokens are those of the server's own usage; a stream of another length counts as failed.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PROMPT_TOKENS = (8, 128, 1024)
"""Smallest, median and largest number."""
OUTPUT_TOKENS = (8, 72, 512)
TOKEN_IDS = (1000, 40_000)


@dataclass
class Stream:
    """One request and when its pieces of text came; seconds on the monotonic clock."""

    prompt_ids: list[int]
    max_tokens: int
    sent_at: float = 0.0
    text_at: list[float] = field(default_factory=list)
    output_tokens: int = 0
    error: str = ""


def draw_work(count: int, draw: random.Random) -> list[Stream]:
    def length(smallest: int, median: int, largest: int) -> int:
        return min(largest, max(smallest, round(median * draw.lognormvariate(0, 0.85))))

    return [
        Stream([draw.randint(*TOKEN_IDS) for _ in range(length(*PROMPT_TOKENS))], length(*OUTPUT_TOKENS))
        for _ in range(count)
    ]


async def run_stream(session: aiohttp.ClientSession, url: str, model: str, stream: Stream) -> None:
    body = {
        "model": model,
        "prompt": stream.prompt_ids,
        "max_tokens": stream.max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    stream.sent_at = time.monotonic()
    try:
        async with session.post(f"{url}/completions", json=body) as answer:
            async for event in events(answer):
                take(stream, event)
    except (aiohttp.ClientError, TimeoutError) as error:
        stream.error = repr(error)
    if not stream.error and stream.output_tokens != stream.max_tokens:
        stream.error = f"{stream.output_tokens} tokens instead of {stream.max_tokens}"


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    if answer.status != 200:
        yield {"error": {"message": f"HTTP {answer.status}: {(await answer.text())[:200]}"}}
        return
    async for line in answer.content:
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def take(stream: Stream, event: dict[str, Any]) -> None:
    if event.get("error"):
        stream.error = str(event["error"]["message"])
    if event.get("usage"):
        stream.output_tokens = event["usage"]["completion_tokens"]
    if any(choice.get("text") for choice in event.get("choices", [])):
        stream.text_at.append(time.monotonic())


def percentiles_ms(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return (
        {f"p{q}": round(1000 * ordered[len(ordered) * q // 100], 1) for q in (50, 95, 99)} if ordered else {}
    )


def figures(streams: Sequence[Stream], took_s: float) -> dict[str, Any]:
    good = [stream for stream in streams if not stream.error]
    tokens = sum(stream.output_tokens for stream in good)
    gaps = [b - a for s in good for a, b in zip(s.text_at, s.text_at[1:], strict=False)]
    return {
        "streams": len(streams),
        "failed": len(streams) - len(good),
        "errors": sorted({stream.error for stream in streams if stream.error})[:3],
        "seconds": round(took_s, 2),
        "output_tokens": tokens,
        "output_tokens_per_s": round(tokens / took_s, 1),
        "ttft_ms": percentiles_ms([s.text_at[0] - s.sent_at for s in good if s.text_at]),
        "gap_ms": percentiles_ms(gaps),
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    streams = draw_work(options.requests, random.Random(options.seed))  # noqa: S311
    places = asyncio.Semaphore(options.concurrency)
    headers = {"Authorization": f"Bearer {options.key}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_read=options.timeout)
    unlimited = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=unlimited) as session:

        async def in_turn(stream: Stream) -> None:
            async with places:
                await run_stream(session, options.url, options.model, stream)

        started = time.monotonic()
        await asyncio.gather(*map(in_turn, streams))
        return figures(streams, time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description="Load an OpenAI-compatible server with streams.")
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--key", required=True)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120, help="seconds of silence that end a stream")
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))


if __name__ == "__main__":
    main()
