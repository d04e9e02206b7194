from dataclasses import replace

import pytest

from inference_engine.scheduling.scheduler import SchedulerConfig

CONFIG = SchedulerConfig(
    num_blocks=4, max_running=2, context_length=100, vocab_size=10, cache_secret=b"very secret"
)


@pytest.mark.parametrize(
    "fields",
    [{"num_blocks": 0}, {"max_running": 0}, {"prefill_budget": 0}, {"lag": 2}, {"max_step_tokens": 2}],
)
def test_what_could_never_work_is_refused_at_the_start(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        replace(CONFIG, **fields)


@pytest.mark.parametrize(("fields", "tokens"), [({}, 64), ({"num_blocks": 100}, 100)])
def test_the_largest_request_is_bounded_by_pool_and_context(fields, tokens):
    assert replace(CONFIG, **fields).max_request_tokens == tokens


def test_the_secret_is_not_printed():
    assert "secret" not in repr(CONFIG).replace("cache_secret", "")
