"""When drafts rest, when they come back, and how many there are."""

from inference_engine.scheduling.drafting.worth import FIRST_REST, LONGEST_REST, DraftWorth


def fail_until_it_rests(worth: DraftWorth, num_known: int, row_share: float) -> int:
    """Returns the number of drafts that this took."""
    num_drafts = 0
    while count := worth.count(num_known, row_share):
        worth.learn(count, 0)
        num_drafts += count
        assert num_drafts < 100
    return num_drafts


def test_their_number_doubles_while_all_are_right_and_falls_to_where_they_failed() -> None:
    worth = DraftWorth(8, lag=0)
    assert worth.count(10, 0.0) == 4
    worth.learn(4, 4)
    assert worth.count(15, 0.0) == 8
    worth.learn(8, 8)
    assert worth.count(24, 0.0) == 8
    worth.learn(8, 2)
    assert worth.count(27, 0.0) == 3


def test_wrong_ones_rest_longer_each_time_and_come_back_one_at_a_time() -> None:
    worth, now, rests = DraftWorth(8, lag=0), 100, []
    fail_until_it_rests(worth, now, 0.3)
    for _ in range(8):
        since = now
        while not worth.count(now, 0.3):
            now += 1
        rests.append(now - since)
        assert worth.count(now, 0.3) == 1
        assert fail_until_it_rests(worth, now, 0.3) == 1
    assert rests == [min(FIRST_REST * 2**n, LONGEST_REST) for n in range(8)]


def test_one_trial_that_is_right_brings_them_back() -> None:
    worth = DraftWorth(8, lag=0)
    fail_until_it_rests(worth, 0, 0.3)
    worth.learn(worth.count(FIRST_REST, 0.3), 1)
    assert worth.count(FIRST_REST + 2, 0.3) == 2


def test_the_same_text_is_worth_guessing_alone_and_not_in_a_crowd() -> None:
    alone, crowded = DraftWorth(8, lag=0), DraftWorth(8, lag=0)
    for worth in (alone, crowded):
        for _ in range(20):
            worth.learn(4, 2)
    assert alone.count(50, 0.1) > 0
    assert crowded.count(50, 0.9) == 0


def test_with_lag_1_drafts_must_make_up_for_the_step_left_out() -> None:
    worth = DraftWorth(8, lag=1)
    assert worth.count(0, 0.0) == 4
    for _ in range(20):
        worth.learn(8, 1)
    assert worth.count(0, 0.0) == 0
    assert worth.count(FIRST_REST, 0.0) == 4
