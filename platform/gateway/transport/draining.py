"""Reading on, of a body that is refused: who is cut off while still sending may never read why."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

LONGEST_S = 20.0
LONGEST_PAUSE_S = 1.0
"""Without a byte: whoever sends so slowly waits for the answer."""


async def drain(receive: Callable[[], Awaitable[MutableMapping[str, Any]]], max_bytes: int) -> None:
    """Drop what still comes, within limits."""
    num_bytes, ends_at = 0, asyncio.get_running_loop().time() + LONGEST_S
    with contextlib.suppress(TimeoutError):
        while num_bytes < max_bytes and asyncio.get_running_loop().time() < ends_at:
            async with asyncio.timeout(LONGEST_PAUSE_S):
                message = await receive()
            num_bytes += len(message.get("body", b""))
            if not message.get("more_body", False):
                return
