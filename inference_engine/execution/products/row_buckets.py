"""Row counts that matrix products run with: few enough to be warmed and probed before the engine is ready."""

SMALLEST = 2
"""A product with one row takes another code path than all others, so it would round differently."""
EXACT_UP_TO = 64
STRIDE = 16


def exactly(num_rows: int) -> int:
    """Where every product is our own: each row is a chain of its own, whatever runs beside it."""
    return num_rows


def row_bucket(num_rows: int) -> int:
    """Rows to run for num_rows >= 1: exact from 2 to 64, above that the next multiple of 16."""
    if num_rows <= EXACT_UP_TO:
        return max(num_rows, SMALLEST)
    return -(-num_rows // STRIDE) * STRIDE


def all_buckets(max_rows: int) -> list[int]:
    """Every bucket that up to max_rows rows can fall into, rising."""
    return sorted({row_bucket(rows) for rows in range(1, max_rows + 1)})
