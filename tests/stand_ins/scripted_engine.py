"""An engine that does what a test says: speaks the real contract over real gRPC, computes nothing.

Tokens are a function of the position alone. `silent`, `stuck` and `attempt_shift` are the faults it can show.
"""

import asyncio
import contextlib
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from msgspec import structs
from redis.asyncio import Redis

from inference_engine.contract.codes import BROADER, Code, FinishReason
from inference_engine.contract.events import (
    Accepted,
    Delta,
    Description,
    EngineMessage,
    Finished,
    Refused,
    Stats,
    TokenLogprobs,
    Usage,
)
from inference_engine.contract.registry import (
    REPLICA_SET_KEY,
    ReplicaRecord,
    ReplicaState,
    encode_record,
    record_key,
)
from inference_engine.contract.requests import Abort, Describe, GatewayMessage, Generate
from inference_engine.contract.wire import (
    METHOD,
    PROTOCOL_VERSION,
    SERVICE,
    decode_gateway_frame,
    engine_frame,
)


def description(**changes: object) -> Description:
    facts: dict[str, object] = {
        "model": "scripted",
        "revision": "r1",
        "tokenizer_json": b"{}",
        "tokenizer_hash": "t1",
        "context_length": 256,
        "vocab_size": 1000,
        "max_request_tokens": 200,
        "max_running": 16,
        "dtype": "float32",
        "backend": "scripted",
        "batch_invariant": True,
        "fingerprint": "scripted-1",
        "created": 1,
    }
    return Description(**(facts | changes))  # type: ignore[arg-type]


@dataclass
class Running:
    message: Generate
    num_sent: int = 0


@dataclass
class ScriptedEngine:
    """Serve on a unix socket in `folder`; `await start()`, `await stop()`."""

    folder: Path
    replica_id: str = "scripted-0"
    boot_id: str = "boot-1"
    described: Description = field(default_factory=description)
    step_s: float = 0.005
    tokens_per_step: int = 1
    script: list[int] = field(default_factory=list)
    """Token ids to send, by position in the output; beyond its end, 100 + position."""
    end_after: int | None = None
    """Sample an end id after so many tokens."""
    hold_after: int | None = None
    """Go on for ever after so many tokens, without another one."""
    echoes: bool = False
    """Say each request's own prompt instead, and end."""
    silent: bool = False
    stuck: bool = False
    attempt_shift: int = 0
    refuse_with: Code | None = None
    max_live: int | None = None
    """One more is refused with QUEUE_FULL."""
    broken_text: int | None = None
    """The first token of a text that can't be embedded."""
    most_live: int = 0
    received: list[GatewayMessage] = field(default_factory=list)
    num_frames: int = 0
    stats: Stats = field(default_factory=Stats)
    step: int = 0
    _beating: "asyncio.Task[None] | None" = None
    _is_withdrawn: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"unix:{self.folder}/{self.replica_id}.sock"

    def record(self, **changes: object) -> ReplicaRecord:
        facts: dict[str, object] = {
            "replica_id": self.replica_id,
            "boot_id": self.boot_id,
            "address": self.address,
            "model": self.described.model,
            "state": ReplicaState.READY,
            "protocol_version": PROTOCOL_VERSION,
        }
        return ReplicaRecord(**(facts | changes))  # type: ignore[arg-type]

    async def publish(self, redis: "Redis", **changes: object) -> None:
        """From now on, again and again, as long as this engine lives."""
        await self.withdraw()
        await self._publish_once(redis, changes)
        self._beating = asyncio.create_task(self._beat(redis, changes))

    async def withdraw(self) -> None:
        """No more heartbeats, nor is one still on its way; the record stays as it is."""
        if self._beating is not None:
            self._is_withdrawn.set()
            await asyncio.wait({self._beating})
            self._is_withdrawn.clear()
            self._beating = None

    async def _beat(self, redis: "Redis", changes: dict[str, object]) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._is_withdrawn.wait()
                    return
            await self._publish_once(redis, changes)

    async def _publish_once(self, redis: "Redis", changes: dict[str, object]) -> None:
        await redis.sadd(REPLICA_SET_KEY, self.replica_id)
        record = self.record(heartbeat_at=time.time(), **changes)
        await redis.set(record_key(self.replica_id), encode_record(record), ex=600)

    async def start(self) -> None:
        self._build()
        self._server.add_insecure_port(self.address)
        await self._server.start()

    async def start_secure(self, credentials: grpc.ServerCredentials) -> int:
        """On a loopback port of its own."""
        self._build()
        port = self._server.add_secure_port("localhost:0", credentials)
        await self._server.start()
        return int(port)

    def _build(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", 1 << 25)])
        handler = grpc.stream_stream_rpc_method_handler(self._session)
        service = grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})
        self._server.add_generic_rpc_handlers((service,))

    async def stop(self) -> None:
        await self.withdraw()
        await self._server.stop(None)

    def got(self, kind: type) -> list[GatewayMessage]:
        return [message for message in self.received if type(message) is kind]

    async def _session(self, frames: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        running: dict[str, Running] = {}
        outbox: list[EngineMessage] = []
        reader = asyncio.create_task(self._read(frames, running, outbox))
        try:
            while True:
                await asyncio.sleep(self.step_s)
                if self.silent:
                    continue
                if not self.stuck:
                    self.step += 1
                    self._step(running, outbox)
                    outbox.append(self.stats)
                messages, outbox[:] = list(outbox), []
                yield engine_frame(messages, step=self.step, has_work=bool(running))
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    async def _read(
        self, frames: AsyncIterator[bytes], running: dict[str, Running], outbox: list[EngineMessage]
    ) -> None:
        async for data in frames:
            self.num_frames += 1
            for message in decode_gateway_frame(data).messages:
                self.received.append(message)
                self._take(message, running, outbox)

    def _take(
        self, message: GatewayMessage, running: dict[str, Running], outbox: list[EngineMessage]
    ) -> None:
        if type(message) is Describe:
            outbox.append(self.described)
        elif type(message) is Abort and message.request_id in running:
            outbox.append(
                self._finished(running.pop(message.request_id), FinishReason.ABORTED, Code.CLIENT_GONE)
            )
        elif type(message) is Generate and self._refusal(running) is not None:
            refusal = self._refusal(running)
            assert refusal is not None
            refused = Refused(
                request_id=message.request_id,
                attempt=message.attempt,
                code=BROADER.get(refusal, refusal),
                exact_code=refusal if refusal in BROADER else "",
                message="as scripted",
            )
            outbox.append(refused)
        elif type(message) is Generate:
            running[message.request_id] = Running(message, len(message.output_ids))
            self.most_live = max(self.most_live, len(running))
            outbox.append(
                Accepted(
                    request_id=message.request_id,
                    attempt=message.attempt + self.attempt_shift,
                    prompt_tokens=len(message.prompt_ids),
                    max_tokens=message.sampling.max_tokens,
                )
            )

    def _refusal(self, running: dict[str, Running]) -> Code | None:
        is_full = self.max_live is not None and len(running) >= self.max_live
        return Code.QUEUE_FULL if is_full else self.refuse_with

    def _step(self, running: dict[str, Running], outbox: list[EngineMessage]) -> None:
        for request_id, one in list(running.items()):
            if one.message.embeds:
                if self.tokens_per_step:
                    outbox.append(self._embedded(running.pop(request_id)))
                continue
            ids = self._next_ids(one)
            if ids:
                outbox.append(self._delta(one, ids))
            one.num_sent += len(ids)
            if one.num_sent >= one.message.sampling.max_tokens:
                outbox.append(self._finished(running.pop(request_id), FinishReason.LENGTH))
            elif one.num_sent >= self._end_of(one):
                outbox.append(self._finished(running.pop(request_id), FinishReason.STOP))

    def _embedded(self, one: Running) -> Finished:
        """A vector of two numbers: the first token and how many there are."""
        first, num_tokens = one.message.prompt_ids[0], len(one.message.prompt_ids)
        if first == self.broken_text:
            return self._finished(one, FinishReason.FAILED, Code.NON_FINITE_LOGITS)
        vector = struct.pack("<2f", first, num_tokens)
        return structs.replace(self._finished(one, FinishReason.STOP), vector=vector)

    def _next_ids(self, one: Running) -> list[int]:
        end = min(one.num_sent + self.tokens_per_step, one.message.sampling.max_tokens, self._end_of(one))
        if self.hold_after is not None:
            end = min(end, self.hold_after)
        script = one.message.prompt_ids if self.echoes else self.script
        return [
            script[position] if position < len(script) else 100 + position
            for position in range(one.num_sent, end)
        ]

    def _end_of(self, one: Running) -> int:
        if self.echoes:
            return len(one.message.prompt_ids)
        return one.message.sampling.max_tokens if self.end_after is None else self.end_after

    def _delta(self, one: Running, ids: list[int]) -> Delta:
        wanted = one.message.sampling.logprobs
        logprobs = None
        if wanted is not None:
            top = [(token, -0.5 - token / 1e4) for token in range(wanted)]
            logprobs = [TokenLogprobs(logprob=-0.5, top=top) for _ in ids]
        attempt = one.message.attempt + self.attempt_shift
        return Delta(request_id=one.message.request_id, attempt=attempt, token_ids=ids, logprobs=logprobs)

    def _finished(self, one: Running, reason: FinishReason, code: Code | None = None) -> Finished:
        usage = Usage(prompt_tokens=len(one.message.prompt_ids), output_tokens=one.num_sent)
        attempt = one.message.attempt + self.attempt_shift
        return Finished(
            request_id=one.message.request_id, attempt=attempt, reason=reason, code=code, usage=usage
        )
