"""Gap targets: how much prefill the running decodes can bear."""

import pytest

from inference_engine.contract.requests import ServiceClass

CHAT, STANDARD, BULK = ServiceClass


def seconds_of(plan) -> float:
    return 0.01 + sum(0.001 if len(c.token_ids) == 1 else 0.0005 * len(c.token_ids) for c in plan.chunks)


def run_busy(engine, num_steps: int, **stream) -> list[tuple[int, float]]:
    """Four streams beside a never-ending supply of prompts; (prefill tokens, seconds) of each later step."""
    for number in range(4):
        engine.add(f"stream{number}", 4, max_tokens=1_000, ignore_eos=True, **stream)
    seen = []
    for number in range(num_steps):
        if engine.scheduler.stats().num_waiting < 2:
            engine.add(f"prompt{number}", 500, max_tokens=1, tenant_id="bob", service_class=BULK)
        plan = engine.plan()
        engine.apply(plan)
        engine.scheduler.observe_step(plan, seconds_of(plan))
        sizes = [len(c.token_ids) for c in plan.chunks]
        seen.append((sum(size for size in sizes if size > 1), seconds_of(plan)))
    return seen[num_steps // 2 :]


@pytest.fixture
def busy(engine):
    return lambda **fields: engine(
        num_blocks=1_000,
        max_running=32,
        prefill_budget=128,
        bulk_tokens=512,
        enable_prefix_cache=False,
        **fields,
    )


def test_without_targets_the_configured_budget_holds(busy):
    assert max(tokens for tokens, _ in run_busy(busy(), 200)) <= 128


@pytest.mark.parametrize("target", [0.05, 0.1])
def test_steps_are_filled_up_to_the_gap_target_and_not_beyond(busy, target):
    seen = run_busy(busy(gap_targets={STANDARD: target}), 400)
    full = [seconds for tokens, seconds in seen if tokens]
    assert max(full) <= target * 1.1
    assert sum(full) / len(full) >= target * 0.8


def test_the_smallest_target_of_those_that_run_counts(busy):
    seen = run_busy(busy(gap_targets={CHAT: 0.04, STANDARD: 0.2}), 400, service_class=CHAT)
    assert max(seconds for _, seconds in seen) <= 0.044


def test_classes_without_a_target_keep_the_configured_budget(busy):
    seen = run_busy(busy(gap_targets={CHAT: 0.02}), 200)
    assert max(tokens for tokens, _ in seen) > 100


def test_prompts_move_even_when_the_target_cannot_be_met(busy):
    seen = run_busy(busy(gap_targets={STANDARD: 0.001}), 200)
    assert min(tokens for tokens, _ in seen) >= 8
