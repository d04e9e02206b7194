"""Start and end of one ASGI process: the hot path's own, then the settlements under way are finished."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from admission.settlement import finish_settlements
from quotas.store import close_async_redis

Message = MutableMapping[str, Any]
Application = Callable[..., Awaitable[None]]


async def run_lifespan(
    hot_path: Application,
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    async def send_when_settled(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown"):
            await finish_settlements()
            await close_async_redis()
        await send(message)

    await hot_path(scope, receive, send_when_settled)
