from inference_engine.execution.products.row_buckets import all_buckets, row_bucket


def test_one_row_is_never_run_alone() -> None:
    assert row_bucket(1) == 2


def test_small_counts_are_exact_and_large_ones_multiples_of_sixteen() -> None:
    assert [row_bucket(n) for n in (2, 3, 63, 64)] == [2, 3, 63, 64]
    assert [row_bucket(n) for n in (65, 80, 81, 511)] == [80, 80, 96, 512]


def test_all_buckets_are_just_those_that_counts_fall_into() -> None:
    buckets = all_buckets(100)
    assert buckets == [*range(2, 65), 80, 96, 112]
    assert {row_bucket(n) for n in range(1, 101)} == set(buckets)
