"""Fairness on production traffic: `python -m inference_engine.simulation.servegen --data
../shared/data/servegen_m_small`.

ServeGen's clients, each a tenant, offer `--load` times what the engine can do, once under each policy. Told
is the largest difference in weighted service between two tenants that were both backlogged through a window
of 60 s, and the service given in all. The last line is one JSON object.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_engine.scheduling.scheduler import SchedulerConfig

from .servegen_trace import Client, arrivals, read_clients
from .service_log import Gap
from .simulated_engine import SimulatedEngine

GAP_WINDOW_S = 60
CALIBRATION_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    gap: Gap
    throughput: float
    """Service a second."""
    num_preemptions: int


def config(policy: str) -> SchedulerConfig:
    return SchedulerConfig(
        num_blocks=2_048,
        max_running=64,
        context_length=4_096,
        vocab_size=16,
        cache_secret=b"servegen",
        max_waiting=1_000_000,
        policy=policy,
        enable_prefix_cache=False,
    )


def capacity(clients: list[Client], seed: int) -> float:
    """Service a second of an engine that never lacks work of this mix."""
    engine = SimulatedEngine(config("fcfs"))
    engine.run(arrivals(clients, 1.0, CALIBRATION_S / 4, seed), CALIBRATION_S)
    return engine.log.total / engine.now


def slowdown_for(clients: list[Client], load: float, seed: int) -> float:
    """How far arrivals must be drawn apart to offer `load` times the capacity."""
    return sum(client.offered for client in clients) / (load * capacity(clients, seed))


def replay(clients: list[Client], policy: str, slowdown: float, seconds: float, seed: int) -> Outcome:
    engine = SimulatedEngine(config(policy))
    engine.run(arrivals(clients, slowdown, seconds, seed), seconds)
    gap = engine.log.largest_gap(GAP_WINDOW_S, engine.now)
    return Outcome(gap, engine.log.total / engine.now, engine.scheduler.stats().num_preemptions)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fairness among ServeGen's clients under each policy.")
    parser.add_argument("--data", type=Path, required=True, help="folder of chunk-N-trace.csv")
    parser.add_argument("--start", type=int, default=36_000, help="second of the week to take rates from")
    parser.add_argument("--seconds", type=float, default=600.0, help="simulated")
    parser.add_argument("--load", type=float, default=1.5, help="offered / what fits")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    clients = read_clients(options.data, options.start)
    slowdown = slowdown_for(clients, options.load, options.seed)
    outcomes = {}
    for policy in ("fcfs", "fair"):
        outcome = replay(clients, policy, slowdown, options.seconds, options.seed)
        outcomes[policy] = outcome
        print(f"{policy}: {outcome}", flush=True)
    told = {
        "tenants": len(clients),
        "max_gap_fcfs": round(outcomes["fcfs"].gap.service, 1),
        "max_gap_fair": round(outcomes["fair"].gap.service, 1),
        "throughput_ratio": round(outcomes["fair"].throughput / outcomes["fcfs"].throughput, 4),
    }
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
