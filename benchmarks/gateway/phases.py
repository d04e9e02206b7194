"""What is measured, one function a question."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.gateway.client import Client, Load, Stream, Work
from benchmarks.gateway.histogram import buckets_of, percentile
from benchmarks.gateway.installation import Installation

NUM_STREAMS = 200
GATE = "octavo_gate_seconds"
SHORT = 16


@dataclass(frozen=True, slots=True)
class Relay:
    tokens_per_s: float
    cpu_us_per_token: float
    share_of_own_chunks: float
    """Chunks over tokens: below 1 where a token alone is no text yet, or where several went in one chunk."""
    engine_cpu_us_per_token: float


@dataclass(frozen=True, slots=True)
class Gate:
    num_requests: int
    num_failures: int
    p50_ms: float
    p99_ms: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    live_tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Burst:
    num_failures: int
    last_ttft_ms: float


@dataclass(frozen=True, slots=True)
class LargePrompt:
    status: int
    gap_before_ms: float
    gap_beside_ms: float


async def relay(octavo: Installation, model: str, tokens_each: int) -> Relay:
    """From the moment that every stream flows until the first one ends."""
    load = Load(octavo.port, octavo.key)
    await _open(load, [Work(model, tokens_each)] * NUM_STREAMS)
    begun, cpu, engine, pieces = (
        time.monotonic(),
        octavo.cpu_s("gateway"),
        octavo.cpu_s(model),
        load.num_pieces(),
    )
    await asyncio.wait([client.done for client in load.clients], return_when=asyncio.FIRST_COMPLETED)
    took = time.monotonic() - begun
    cpu, engine = octavo.cpu_s("gateway") - cpu, octavo.cpu_s(model) - engine
    pieces = load.num_pieces() - pieces
    streams = await _finished(load.clients)
    share = sum(one.num_pieces for one in streams) / sum(one.num_tokens for one in streams)
    if not all(one.is_whole and one.num_tokens == tokens_each for one in streams):
        raise SystemExit("a stream of the relay phase was not whole")
    return Relay(pieces / took, cpu / pieces * 1e6, share, engine / pieces * 1e6)


async def gate(octavo: Installation, model: str, rate: float, seconds: float) -> Gate:
    """Open loop: requests come when they are due, whatever became of those before."""
    live = Load(octavo.port, octavo.key)
    await _open(live, [Work(model, 100_000 // 16)] * NUM_STREAMS)
    load = Load(octavo.port, octavo.key)
    before, pieces, begun = buckets_of(octavo.metrics(), GATE), live.num_pieces(), time.monotonic()
    for number in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
        await load.open(Work(model, SHORT))
    streams = await _finished(load.clients)
    took, after = time.monotonic() - begun, buckets_of(octavo.metrics(), GATE)
    pieces = live.num_pieces() - pieces
    _close(live)
    first = sorted((one.first_at or 1e9) - one.sent_at for one in streams)
    return Gate(
        len(streams),
        sum(not one.is_whole for one in streams),
        1000 * percentile(before, after, 0.50),
        1000 * percentile(before, after, 0.99),
        1000 * first[len(first) // 2],
        1000 * first[len(first) * 99 // 100],
        pieces / took,
    )


async def burst(octavo: Installation, model: str) -> Burst:
    """All at one moment; the connections are part of it."""
    load = Load(octavo.port, octavo.key)
    begun = time.monotonic()
    await asyncio.gather(*(load.open(Work(model, SHORT)) for _ in range(NUM_STREAMS)))
    streams = await _finished(load.clients)
    last = max((one.first_at or float("inf")) - begun for one in streams)
    return Burst(sum(not one.is_whole for one in streams), 1000 * last)


async def large_prompt(octavo: Installation, model: str, asked: str, num_bytes: int) -> LargePrompt:
    """The longest gap of any of the live streams, before and while one huge prompt comes in."""
    live = Load(octavo.port, octavo.key)
    await _open(live, [Work(model, 100_000 // 16)] * NUM_STREAMS)
    since = time.monotonic()
    await asyncio.sleep(3.0)
    sent_at = time.monotonic()
    client = await Load(octavo.port, octavo.key).open(Work(asked, SHORT, _text(num_bytes)))
    answered = await client.done
    await asyncio.sleep(0.2)
    until = time.monotonic()
    _close(live)
    return LargePrompt(
        answered.status, _longest_gap_ms(live, since, sent_at), _longest_gap_ms(live, sent_at, until)
    )


def _text(num_bytes: int) -> str:
    """Words, as in a long document: one tokenizer's piece each."""
    words = ("a paged cache lets many readers share one long prompt; ", "and so on, 17 times. ")
    return ("".join(words) * (num_bytes // sum(map(len, words)) + 1))[:num_bytes]


async def _open(load: Load, works: Sequence[Work]) -> None:
    """Until all of them flow."""
    await asyncio.gather(*(load.open(work) for work in works))
    await asyncio.gather(*(client.flows for client in load.clients))


async def _finished(clients: Sequence[Client]) -> list[Stream]:
    return list(await asyncio.gather(*(client.done for client in clients)))


def _close(load: Load) -> None:
    for client in load.clients:
        client.transport.abort()


def _longest_gap_ms(load: Load, since: float, until: float) -> float:
    return 1000 * max(client.stream.longest_gap_s(since, until) for client in load.clients)
