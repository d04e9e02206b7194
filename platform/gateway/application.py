"""The hot path: generation, models and health as one plain ASGI application, outside Django's handlers."""

import asyncio

import structlog

from gateway.errors import SHAPES, internal_error
from gateway.messages.errors import is_of_messages, speak_anthropic
from gateway.routes import find_endpoint
from gateway.services import Services
from gateway.transport.exchange import MAX_HEADER_BYTES, ClientGone, Exchange, Receive, Scope, Send
from inference_engine.contract.codes import Code
from tenants.errors import Denied

log = structlog.get_logger("gateway")

LEAVING_S = 3.0
"""For requests that were told to end: the engine's last word, the last event, the settlement's start."""


class Gateway:
    def __init__(self) -> None:
        self.services: Services | None = None
        self._answering: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            await self._answer(Exchange(scope, receive, send))
        finally:
            self._answering.discard(task)

    async def startup(self) -> None:
        self.services = Services()
        await self.services.start()

    async def shutdown(self) -> None:
        """The server has cancelled what was still open, and waits for none of it."""
        if self._answering:
            await asyncio.wait(self._answering, timeout=LEAVING_S)
        if self.services is not None:
            await self.services.stop()
            self.services = None

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.startup()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.shutdown()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, exchange: Exchange) -> None:
        if is_of_messages(exchange.path):
            speak_anthropic(exchange)
        try:
            await self._dispatch(exchange)
        except ClientGone:
            return
        except asyncio.CancelledError:  # this process stops; raised again, each would be logged
            await _deny(exchange, Denied(Code.DRAINING, "This server is stopping.", retry_after_s=1.0))
        except Denied as denied:
            await _deny(exchange, denied)
        except Exception:
            log.exception("request_broke", request_id=exchange.request_id, path=exchange.path)
            await _deny(exchange, internal_error())

    async def _dispatch(self, exchange: Exchange) -> None:
        if exchange.num_header_bytes > MAX_HEADER_BYTES:
            message = f"The headers are larger than the {MAX_HEADER_BYTES} bytes accepted here."
            raise Denied(Code.HEADERS_TOO_LARGE, message)
        endpoint = find_endpoint(exchange.method, exchange.path)
        if self.services is None:
            raise Denied(Code.NO_READY_REPLICA, "This server is not running yet.", retry_after_s=1.0)
        await endpoint(exchange, self.services)


async def _deny(exchange: Exchange, denied: Denied) -> None:
    """An error event where the stream has begun, else an answer of its own."""
    if SHAPES[denied.code].status >= 500:
        log.warning("request_failed", request_id=exchange.request_id, code=denied.code.value)
    if exchange.is_started:
        await exchange.end_stream(exchange.errors.event(denied, exchange.request_id))
    else:
        await exchange.send_error(denied)


application = Gateway()
