"""The gateway's own cost: one process, fake engines, real Redis; keys, limits and ledger on.

    make bench-gateway

Everything shares this machine, nothing is pinned, and the client has the same nice level as the rest. The
last line is one JSON object.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import uvloop

from benchmarks.gateway import phases
from benchmarks.gateway.installation import Installation

MODEL_DIR = Path(os.environ.get("OCTAVO_MODEL_DIR") or "var/models/smollm2-135m-instruct")
ROOM = ("--max-running", "512", "--max-step-tokens", "4096", "--prefill-budget", "4096")
SATURATED = (*ROOM, "--num-blocks", "20000", "--outbox-tokens", "10000000", "--outbox-frames", "100000")
LONG_CONTEXT = 1_000_000
LARGE_PROMPT_BYTES = 2_000_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway")
    parser.add_argument("--tokens", type=int, default=500, help="of each of the saturated streams")
    parser.add_argument("--fast-step-ms", type=float, default=4.0, help="of the engine that saturates")
    parser.add_argument("--step-ms", type=float, default=20.0, help="of the engine beside the open loop")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the open loop")
    parser.add_argument("--only", choices=("relay", "gate", "burst", "large"), help="one phase alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-bench-", ignore_cleanup_errors=True) as home:
        print(json.dumps(uvloop.run(measure(options, Path(home)))))


async def measure(options: argparse.Namespace, home: Path) -> dict[str, object]:
    with Installation(home, MODEL_DIR) as octavo:
        octavo.start("fast", "paced", "long")
        measured: dict[str, object] = {}
        if options.only in (None, "relay"):
            measured |= await saturate(octavo, options)
        if options.only != "relay":
            paced = ("--fake-step-ms", str(options.step_ms))
            octavo.start_engine("paced", *ROOM, "--num-blocks", "100000", *paced)
        if options.only in (None, "gate"):
            measured |= await open_loop(octavo, options)
        if options.only in (None, "burst"):
            measured |= await burst(octavo)
        if options.only in (None, "large"):
            measured |= await large(octavo, home)
    return measured


async def saturate(octavo: Installation, options: argparse.Namespace) -> dict[str, object]:
    octavo.start_engine("fast", *SATURATED, "--fake-step-ms", str(options.fast_step_ms))
    await phases.burst(octavo, "fast")  # warm
    relay = await phases.relay(octavo, "fast", options.tokens)
    tell(relay)
    octavo.stop("fast")
    return {
        "tokens_per_s": round(relay.tokens_per_s),
        "cpu_us_per_token": round(relay.cpu_us_per_token, 1),
    }


async def open_loop(octavo: Installation, options: argparse.Namespace) -> dict[str, object]:
    gate = await phases.gate(octavo, "paced", 50.0, options.seconds)
    tell(gate)
    return {"gate_ms": {"p50": round(gate.p50_ms, 2), "p99": round(gate.p99_ms, 2)}}


async def burst(octavo: Installation) -> dict[str, object]:
    bursts = [await phases.burst(octavo, "paced") for _ in range(3)]
    for each in bursts:
        tell(each)
    return {
        "burst_failures": sum(each.num_failures for each in bursts),
        "burst_last_ttft_ms": round(sorted(each.last_ttft_ms for each in bursts)[1], 1),
    }


async def large(octavo: Installation, home: Path) -> dict[str, object]:
    """Refused by the paced engine's model, accepted by one with the context for it."""
    long_dir = with_context(MODEL_DIR, home / "long", LONG_CONTEXT)
    flags = ("--num-blocks", "80000", "--max-step-tokens", "4096", "--fake-step-ms", "1")
    octavo.start_engine("long", *flags, model_dir=long_dir)
    grown = {}
    for asked, outcome in (("paced", "refused"), ("long", "accepted")):
        found = await phases.large_prompt(octavo, "paced", asked, LARGE_PROMPT_BYTES)
        tell(found)
        grown[outcome] = round(found.gap_beside_ms - found.gap_before_ms, 1)
    return {"large_prompt_gap_growth_ms": grown}


def with_context(model_dir: Path, folder: Path, context_length: int) -> Path:
    """The same model's files, but for the length of its context: a fake engine looks no further."""
    folder.mkdir()
    for path in model_dir.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    config = json.loads((model_dir / "config.json").read_text()) | {"max_position_embeddings": context_length}
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def tell(figures: object) -> None:
    rounded = {name: round(value, 3) for name, value in asdict(figures).items()}  # type: ignore[call-overload]
    print(type(figures).__name__, json.dumps(rounded), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
