"""WebSocket /v1/responses: from the messages of Channels to a LiveSocket."""

import asyncio
import secrets
from typing import Any

import structlog
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from gateway.application import Gateway
from gateway.errors import SHAPES, error_headers, error_object, internal_error
from gateway.live.closing import CloseCode
from gateway.live.handshake import opening_of
from gateway.live.metrics import REFUSED_SOCKETS
from gateway.live.socket import LiveSocket
from gateway.live.watch import SocketWatch
from gateway.runs.chunks import encode
from gateway.services import Services
from inference_engine.contract.codes import Code
from tenants.errors import Denied

log = structlog.get_logger("gateway")


class LiveConsumer(AsyncConsumer):
    """Nothing here waits for a response to be made: messages are handled one at a time."""

    channel_layer_alias = ""
    """No channel for each socket: control messages are the process's own (responses/cancelling.py)."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._socket: LiveSocket | None = None
        self._watch: SocketWatch | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_given_up = False
        self._gone_for = Code.CLIENT_GONE

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' look at the database connections, which is a thread hop for each message."""
        match message["type"]:
            case "websocket.connect":
                await self._connect()
            case "websocket.receive":
                await self._receive(message)
            case "websocket.disconnect":
                if message["code"] == CloseCode.RESTART:
                    self._gone_for = Code.DRAINING
                raise StopConsumer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._task = asyncio.current_task()
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_given_up:
                raise
        finally:
            await self._leave()

    def _give_up(self) -> None:
        self._is_given_up = True
        if self._task is not None:
            self._task.cancel()

    async def _connect(self) -> None:
        try:
            await self._open(self._services())
        except Denied as denied:
            await self._refuse(denied)
        except Exception:
            log.exception("socket_broke")
            await self._refuse(internal_error())

    def _services(self) -> Services:
        services = self._gateway.services
        if services is None:
            raise Denied(Code.NO_READY_REPLICA, "This server is not running yet.", retry_after_s=1.0)
        return services

    async def _open(self, services: Services) -> None:
        """Raises Denied."""
        opening = await opening_of(self.scope)
        services.sockets.check_room(opening.principal)
        socket = LiveSocket(services, opening, self.base_send, self._give_up)
        services.sockets.add(socket)
        self._socket, self._watch = socket, services.sockets
        await self.base_send({"type": "websocket.accept", "subprotocol": opening.protocol})

    async def _refuse(self, denied: Denied) -> None:
        """With an HTTP answer, as any request would be."""
        REFUSED_SOCKETS.labels(denied.code.value).inc()
        name = f"req_{secrets.token_hex(12)}"
        headers = {"content-type": "application/json", "x-request-id": name, **error_headers(denied)}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        status = SHAPES[denied.code].status
        await self.base_send({"type": "websocket.http.response.start", "status": status, "headers": pairs})
        await self.base_send({"type": "websocket.http.response.body", "body": encode(error_object(denied))})
        raise StopConsumer

    async def _receive(self, message: dict[str, Any]) -> None:
        assert self._socket is not None
        text = message.get("text")
        if text is None:
            await self._socket.tell(Denied(Code.INVALID_REQUEST, "Messages are JSON text, not binary."))
        else:
            await self._socket.take(text.encode())

    async def _leave(self) -> None:
        if self._socket is not None and self._watch is not None:
            self._watch.drop(self._socket)
            await self._socket.gone(self._gone_for)
