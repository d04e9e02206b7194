"""The gRPC side: one bidirectional stream of frames per gateway, on a unix socket or behind mutual TLS."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
import structlog

from inference_engine.contract.events import Description
from inference_engine.contract.limits import FRAME_INTERVAL_S, MAX_FRAME_BYTES
from inference_engine.contract.wire import METHOD, SERVICE

from .addresses import is_unix, prepare_socket, tls_credentials
from .inbox import SessionClosed, SessionOpened
from .loop import EngineLoop
from .outbox import Outbox
from .session import Session
from .settings import Settings

log = structlog.get_logger(__name__)

BEAT_INTERVAL_S = FRAME_INTERVAL_S * 0.8
"""Short of the promise, so that a timer that fires late still keeps it."""
_FRAMING_BYTES = 1024
OPTIONS = [
    ("grpc.max_receive_message_length", MAX_FRAME_BYTES + _FRAMING_BYTES),
    ("grpc.max_send_message_length", MAX_FRAME_BYTES + _FRAMING_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
]


class SessionServer:
    def __init__(
        self, settings: Settings, loop: EngineLoop, description: Description, drain: Callable[[float], None]
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._description = description
        self._drain = drain
        self._sessions: dict[int, Session] = {}
        self._ids = itertools.count(1)
        self._server = grpc.aio.server(options=OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._serve_session)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        self._beats: asyncio.Task[None] | None = None

    @property
    def num_sessions(self) -> int:
        return len(self._sessions)

    async def start(self) -> str:
        """Returns the address it listens at, with the real port where 0 was asked for."""
        address = await self._listen()
        self._beats = asyncio.create_task(self._beat())
        return address

    async def _listen(self) -> str:
        settings = self._settings
        if is_unix(settings.address):
            await self._listen_unix(settings.address)
            return settings.address
        host = settings.address.rpartition(":")[0]
        if settings.tls_cert and settings.tls_key and settings.tls_ca:
            credentials = tls_credentials(settings.tls_cert, settings.tls_key, settings.tls_ca)
            port = self._server.add_secure_port(settings.address, credentials)
        else:
            port = self._server.add_insecure_port(settings.address)
        await self._server.start()
        return f"{host}:{port}"

    async def _listen_unix(self, address: str) -> None:
        prepare_socket(address)
        mask = os.umask(0o177)  # the socket is born 0600
        try:
            self._server.add_insecure_port(address)
            await self._server.start()
        finally:
            os.umask(mask)

    def wake(self, outboxes: Iterable[Outbox]) -> None:
        for outbox in outboxes:
            session = self._sessions.get(outbox.session_id)
            if session is not None:
                session.wake()

    @property
    def is_flushed(self) -> bool:
        """Whether every session has written what the loop had for it."""
        return all(session.is_flushed for session in self._sessions.values())

    async def flush(self) -> None:
        await _until(lambda: self.is_flushed)

    async def stop(self) -> None:
        """End every stream; what came over them and still runs is aborted."""
        if self._beats is not None:
            self._beats.cancel()
        await self._server.stop(grace=None)
        await _until(lambda: not self._sessions)

    async def _beat(self) -> None:
        while True:
            for session in self._sessions.values():
                session.beat()
            await asyncio.sleep(BEAT_INTERVAL_S)

    async def _serve_session(self, frames: AsyncIterator[bytes], context: Any) -> None:
        session = self._make_session()
        session_id = session.outbox.session_id
        self._sessions[session_id] = session
        self._loop.inbox.put(SessionOpened(session.outbox))
        log.info("session_opened", session_id=session_id, peer=context.peer())
        session.beat()
        try:
            await session.serve(frames, context)
        finally:
            del self._sessions[session_id]
            self._loop.inbox.put(SessionClosed(session_id))
            log.info("session_closed", session_id=session_id)

    def _make_session(self) -> Session:
        settings, loop = self._settings, self._loop
        outbox = Outbox(next(self._ids), max_frames=settings.outbox_frames, max_tokens=settings.outbox_tokens)
        return Session(
            outbox, loop.inbox, progress=loop.progress, description=self._description, drain=self._drain
        )


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - rare, and over when the process is
        await asyncio.sleep(0.01)
