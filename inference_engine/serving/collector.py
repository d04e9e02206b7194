"""Python's garbage collector in a process with a model and a loop of steps."""

import gc

NUM_YOUNG = 50_000
"""New objects that bring on a collection. A step makes and drops some thousands: none should be looked at."""
NUM_MIDDLE = 20


def settle_collector() -> None:
    """What lives by now lives as long as the process: never look at it again. A full collection among the
    objects of a model and its libraries takes tenths of a second, and every stream would wait for it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NUM_YOUNG, NUM_MIDDLE, NUM_MIDDLE)
