"""The database, for code on an event loop: one thread, so one connection and no writers that wait for each
other within a process."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="octavo-bulk-database")


async def in_database(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    call = functools.partial(_fresh, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, call)


def _fresh(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A connection that an outage has broken is not used again."""
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()
