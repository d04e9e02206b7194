"""A server of uvicorn's in the test's own event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn


@contextlib.asynccontextmanager
async def served(application: Any, **options: Any) -> AsyncIterator[int]:
    """Its port, as long as the block lasts."""
    config = uvicorn.Config(
        application, port=0, lifespan="off", log_config=None, timeout_graceful_shutdown=2, **options
    )
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):
        task = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
        server.should_exit = True
        await task
