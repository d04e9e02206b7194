"""ServeGen through the real scheduler. Skipped where the traces aren't; the reader is tested
anyway."""

import json
import random
from pathlib import Path

import pytest

from inference_engine.simulation.servegen import main
from inference_engine.simulation.servegen_trace import Arrivals, Lengths, arrivals, read_clients
from source_tree import ROOT

DATA = ROOT.parent / "shared" / "data" / "servegen_m_small"


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    lengths = {"0": {"input_tokens": "{10: 0.5, 30: 0.5}", "output_tokens": "{5: 1.0}"}}
    (tmp_path / "chunk-0-dataset.json").write_text(json.dumps(lengths))
    (tmp_path / "chunk-0-trace.csv").write_text("0,2.0,1.0,Gamma,1.0,0.5\n600,0,0,,0,0\n")
    (tmp_path / "chunk-1-trace.csv").write_text("0,8.0,1.0,Weibull,1.0,0.125\n600,1,1.0,Gamma,1.0,1.0\n")
    return tmp_path


def test_clients_are_those_that_send_the_busiest_first_and_borrow_lengths(small_trace):
    clients = read_clients(small_trace, 0)
    assert [client.name for client in clients] == ["1", "0"]
    assert [client.offered for client in clients] == [8 * 30, 2 * 30]
    assert [client.name for client in read_clients(small_trace, 600)] == ["1"]


@pytest.mark.parametrize("arrival", [Arrivals(4.0, "Gamma", 0.5, 0.5), Arrivals(4.0, "Weibull", 1.0, 0.25)])
def test_gaps_between_requests_have_the_mean_of_the_rate(arrival):
    draw = random.Random(1)
    gaps = [arrival.gap(draw) for _ in range(20_000)]
    assert sum(gaps) / len(gaps) == pytest.approx(1 / arrival.rate, rel=0.05)


def test_arrivals_come_at_the_slowed_rate_with_the_lengths_told(small_trace):
    clients = read_clients(small_trace, 0)
    generates = [generate for _, generate in arrivals(clients, 2.0, 500.0, seed=1)]
    assert len(generates) == pytest.approx(2_500, rel=0.1)
    assert {len(generate.prompt_ids) for generate in generates} == {10, 30}
    assert {generate.sampling.max_tokens for generate in generates} == {5}


def test_lengths_are_cut_at_the_longest():
    lengths = Lengths({5: 0.5, 5_000: 0.5}, longest=100)
    assert lengths.mean == 52.5
    assert {lengths.draw(random.Random(seed)) for seed in range(20)} == {5, 100}


@pytest.mark.skipif(not DATA.is_dir(), reason="ServeGen's traces are not here")
def test_fair_halves_the_largest_gap_between_backlogged_clients_at_the_same_throughput(capsys):
    assert main(["--data", str(DATA), "--seconds", "150"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["max_gap_fair"] > 0
    assert told["max_gap_fair"] <= told["max_gap_fcfs"] / 2
    assert abs(told["throughput_ratio"] - 1) <= 0.03
