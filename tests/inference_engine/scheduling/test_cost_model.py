import random

import pytest

from inference_engine.scheduling.cost_model import NUM_STEPS_TO_TRUST, StepCostModel, StepShape


def seconds(shape: StepShape, slower: float = 1.0) -> float:
    step = 0.01 + 0.0004 * shape.num_decodes + 0.0002 * shape.num_prefill_tokens
    return slower * (step + 2e-7 * shape.num_context_tokens)


def shapes(count: int, seed: int = 1):
    draw = random.Random(seed)
    for _ in range(count):
        num_decodes = draw.randrange(64)
        yield StepShape(
            num_decodes, draw.choice((0, 0, draw.randrange(256))), num_decodes * draw.randrange(900)
        )


@pytest.fixture
def fitted():
    model = StepCostModel()
    draw = random.Random(2)
    for shape in shapes(500):
        model.observe(shape, seconds(shape) * draw.uniform(0.97, 1.03))
    return model


def test_it_predicts_steps_it_has_not_seen(fitted):
    for shape in shapes(50, seed=9):
        assert fitted.predict(shape) == pytest.approx(seconds(shape), rel=0.03)


def test_the_largest_prefill_that_fits_takes_just_the_time_given(fitted):
    num_tokens = fitted.max_prefill_tokens(32, 8_000, 0.05)
    assert seconds(StepShape(32, num_tokens, 8_000)) == pytest.approx(0.05, rel=0.03)


def test_decodes_that_take_longer_than_that_leave_nothing(fitted):
    assert fitted.max_prefill_tokens(64, 60_000, 0.02) == 0


def test_it_follows_a_machine_that_becomes_twice_as_slow(fitted):
    for shape in shapes(2_000, seed=3):
        fitted.observe(shape, seconds(shape, slower=2.0))
    for shape in shapes(50, seed=9):
        assert fitted.predict(shape) == pytest.approx(seconds(shape, slower=2.0), rel=0.05)


def test_one_absurd_step_hardly_moves_it(fitted):
    shape = StepShape(32, 128, 8_000)
    before = fitted.predict(shape)
    fitted.observe(shape, 30.0)
    assert fitted.predict(shape) == pytest.approx(before, rel=0.1)


def test_steps_that_are_all_alike_do_no_harm():
    model, shape = StepCostModel(), StepShape(16, 0, 4_000)
    for _ in range(50_000):
        model.observe(shape, 0.02)
    assert model.predict(shape) == pytest.approx(0.02, rel=0.01)
    for other in shapes(500):
        model.observe(other, seconds(other))
    assert model.predict(StepShape(30, 100, 9_000)) == pytest.approx(
        seconds(StepShape(30, 100, 9_000)), rel=0.25
    )


def test_it_is_not_trusted_before_it_has_seen_enough():
    model = StepCostModel()
    for number, shape in enumerate(shapes(NUM_STEPS_TO_TRUST)):
        assert not model.is_trusted, number
        model.observe(shape, seconds(shape))
    assert model.is_trusted
