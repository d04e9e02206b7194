import gc

import pytest

from inference_engine.serving.collector import NUM_YOUNG, settle_collector


@pytest.fixture(autouse=True)
def same_collector_afterwards():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_lives_is_set_aside_and_what_comes_is_still_collected():
    settle_collector()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == NUM_YOUNG
    loop: list[object] = []
    loop.append(loop)
    del loop
    assert gc.collect() >= 1
