import json

import pytest

from inference_engine.scheduling.policies import POLICIES
from inference_engine.simulation import scheduler_benchmark
from inference_engine.simulation.scheduler_benchmark import main


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_benchmark_ends_with_its_figures(monkeypatch, capsys, policy):
    monkeypatch.setattr(scheduler_benchmark, "RUNNING", (4, 16))
    monkeypatch.setattr(scheduler_benchmark, "settle_collector", lambda: None)
    assert main(["--policy", policy, "--waiting", "60", "--steps", "20"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["plan_apply_ms"]
    assert told.keys() == {"4", "16"}
    assert all(0 < cost < 1_000 for cost in told.values())
