"""The experiments' plumbing, tiny and on the fake runner: what they count, not what anything costs."""

import json
from pathlib import Path

from benchmarks.chat_work import draw_chats
from benchmarks.scheme import batching, long_prompts, prefix_sharing
from benchmarks.scheme.engine import Engine
from benchmarks.scheme.experiments import Plan, claims, run_experiments, tables
from benchmarks.scheme.plots import draw_all
from benchmarks.scheme.progress import Progress
from inference_engine.simulation.fake_runner import FakeRunner, FakeSpeed

SIZES = batching.Sizes(num_requests=12, per_second=1e4, places=4, paged_places=12)
PLAN = Plan(
    chats=SIZES,
    burst=long_prompts.Sizes(num_decoding=2, num_outputs=60, num_long=1, burst_at=0.02),
    prefix=prefix_sharing.Sizes(num_requests=3),
    loads=(1, 4),
    contexts=(16, 64),
)


def engine(step_ms: float = 0.0) -> Engine:
    runner = FakeRunner(num_blocks=1000, vocab_size=49_152, speed=FakeSpeed(step_ms=step_ms))
    return Engine(runner, vocab_size=49_152, context_length=8192)


def test_the_same_seed_is_the_work_that_servers_are_loaded_with() -> None:
    for seed, prompts, outputs in ((0, 10_650, 4_579), (1, 9_538, 4_664)):
        work = draw_chats(48, seed)
        assert sum(len(request.prompt_ids) for request in work) == prompts
        assert sum(request.max_tokens for request in work) == outputs


def test_every_way_of_batching_gives_every_request_its_tokens() -> None:
    runs = batching.run_all(engine(), SIZES, lambda: None)
    wanted = [arrival.request.max_tokens for arrival in batching.arrivals(SIZES)]
    for run in runs.values():
        assert [len(timeline.tokens_at) for timeline in run.timelines] == wanted


def test_idle_rows_and_waste_are_those_of_the_scheme() -> None:
    runs = batching.run_all(engine(), SIZES, lambda: None)
    lengths = [arrival.request.max_tokens for arrival in batching.arrivals(SIZES)]
    batches = [lengths[start : start + 4] for start in range(0, 12, 4)]
    decodes = [step for step in runs["static"].steps if step.num_tokens <= 4]
    assert len(decodes) == sum(map(max, batches))
    assert sum(step.busy for step in decodes) == sum(lengths)
    assert runs["continuous_contiguous"].idle_rows < runs["static"].idle_rows
    assert runs["continuous_contiguous"].kv_waste > 0.8 > 0.1 > runs["chunked"].kv_waste


def test_a_cached_prefix_is_computed_once() -> None:
    sizes = prefix_sharing.Sizes(num_requests=3, num_outputs=2)
    runs = prefix_sharing.run_both(engine(), sizes, lambda: None)
    every_time = 3 * (sizes.prefix + sizes.own + 1)
    assert runs["off"].computed_tokens == every_time
    assert runs["on"].computed_tokens == every_time - 2 * sizes.prefix


def test_results_become_claims_a_table_and_plots(tmp_path: Path) -> None:
    with Progress(PLAN.num_ticks) as progress:
        results = run_experiments(engine(step_ms=1.0), PLAN, progress)
    assert set(json.loads(json.dumps(claims(results)))) == {
        "tokens_per_s", "idle_rows", "kv_waste", "gap_p99_over_p50", "prefix_ttft_ratio",
    }  # fmt: skip
    assert "continuous_contiguous" in tables(results)
    assert all(file.stat().st_size > 1000 for file in draw_all(results, tmp_path))
