"""ServeGen's clients (Alibaba, Apache-2.0) as tenants: each with the arrival rates of its own recorded week.

`chunk-N-trace.csv`: one line for each ten minutes: start, requests a second, coefficient of variation, and
the distribution of the time between two requests with its two parameters. `chunk-N-dataset.json`: how long
prompts and answers are, for each six hours; only four clients have one, and the others take one of theirs in
turn.
"""

import ast
import csv
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams

MAX_PROMPT_TOKENS = 2_000
MAX_OUTPUT_TOKENS = 1_000
"""Longer ones are cut: a handful in a million."""


class Lengths:
    """Token counts and how likely they are."""

    def __init__(self, probabilities: dict[int, float], longest: int) -> None:
        self._counts = [max(1, min(count, longest)) for count in probabilities]
        self._weights = list(probabilities.values())
        total = sum(self._weights)
        self.mean = sum(c * w for c, w in zip(self._counts, self._weights, strict=True)) / total

    def draw(self, draw: random.Random) -> int:
        return draw.choices(self._counts, self._weights)[0]


@dataclass(frozen=True, slots=True)
class Arrivals:
    rate: float
    """Requests a second."""
    pattern: str
    """Of the time between two requests: Gamma or Weibull."""
    shape: float
    scale: float

    def gap(self, draw: random.Random) -> float:
        """Seconds to the next request."""
        if self.pattern == "Weibull":
            return draw.weibullvariate(self.scale, self.shape)
        return draw.gammavariate(self.shape, self.scale)


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    arrivals: Arrivals
    prompts: Lengths
    outputs: Lengths

    @property
    def offered(self) -> float:
        """Service a second: prompt tokens and twice the output tokens."""
        return self.arrivals.rate * (self.prompts.mean + 2 * self.outputs.mean)


Trace = tuple[str, dict[int, Arrivals]]
"""A client's name and its ten minutes, by their first second in the week."""


def read_clients(folder: Path, start: int) -> list[Client]:
    """Those that send anything in the ten minutes that begin `start` seconds into the week, the busiest of
    the week first."""
    datasets = sorted(folder.glob("chunk-*-dataset.json"))
    lengths = {name_of(path): read_lengths(path, start) for path in datasets}
    in_turn = cycle(lengths.values())
    clients = []
    for name, week in sorted(read_traces(folder), key=requests_a_week, reverse=True):
        prompts, outputs = lengths[name] if name in lengths else next(in_turn)
        if week[start].rate > 0:
            clients.append(Client(name, week[start], prompts, outputs))
    return clients


def read_traces(folder: Path) -> Iterator[Trace]:
    for path in sorted(folder.glob("chunk-*-trace.csv")):
        with path.open(newline="") as lines:
            rows = list(csv.reader(lines))
        yield (
            name_of(path),
            {
                int(start): Arrivals(float(rate), pattern, float(shape), float(scale))
                for start, rate, _, pattern, shape, scale in rows
            },
        )


def requests_a_week(trace: Trace) -> float:
    return sum(window.rate for window in trace[1].values())


def name_of(path: Path) -> str:
    return path.name.split("-")[1]


def read_lengths(path: Path, start: int) -> tuple[Lengths, Lengths]:
    periods = {int(begin): lengths for begin, lengths in json.loads(path.read_text()).items() if lengths}
    begin = max((each for each in periods if each <= start), default=min(periods))
    prompts = ast.literal_eval(periods[begin]["input_tokens"])
    outputs = ast.literal_eval(periods[begin]["output_tokens"])
    return Lengths(prompts, MAX_PROMPT_TOKENS), Lengths(outputs, MAX_OUTPUT_TOKENS)


def arrivals(
    clients: list[Client], slowdown: float, seconds: float, seed: int
) -> Iterator[tuple[float, Generate]]:
    """(at, request), client by client, with every time between two requests `slowdown` times as long."""
    draw = random.Random(seed)  # noqa: S311
    for client in clients:
        at, number = client.arrivals.gap(draw) * slowdown * draw.random(), 0
        while at < seconds:
            yield at, request_of(client, number, draw)
            number += 1
            at += client.arrivals.gap(draw) * slowdown


def request_of(client: Client, number: int, draw: random.Random) -> Generate:
    return Generate(
        request_id=f"{client.name}-{number}",
        prompt_ids=[1] * client.prompts.draw(draw),
        sampling=SamplingParams(seed=number, max_tokens=client.outputs.draw(draw), ignore_eos=True),
        tenant_id=client.name,
    )
