"""One engine as the registry names it, and the session that is kept open with it."""

import asyncio
from collections.abc import Callable

import structlog

from fleet.cancelling import cancelled
from fleet.failures import SessionFailed
from fleet.session import EngineSession, SessionOptions
from inference_engine.contract.events import Description
from inference_engine.contract.limits import HEARTBEAT_INTERVAL_S
from inference_engine.contract.registry import ReplicaRecord, ReplicaState

log = structlog.get_logger("fleet")

FIRST_DELAY_S = 0.1
LAST_DELAY_S = 2.0
PROOF_OF_LIFE_S = 1.2 * HEARTBEAT_INTERVAL_S
"""A dead process can have sent one heartbeat more than we had seen, never two."""


class Replica:
    """Keeps one session open while the record lives, and a living session even when the record is gone."""

    def __init__(
        self,
        record: ReplicaRecord,
        options: SessionOptions,
        on_description: Callable[[Description], None] | None = None,
    ) -> None:
        self.record = record
        self._options = options
        self._on_description = on_description
        self.session: EngineSession | None = None
        self.is_listed = True
        self._was_updated = asyncio.Event()
        self._task = asyncio.create_task(self._keep_connected())

    @property
    def is_ready(self) -> bool:
        """New requests may go there."""
        is_draining = self.record.state is ReplicaState.DRAINING
        return self.session is not None and self.session.is_ready and not is_draining

    async def update(self, record: ReplicaRecord) -> None:
        """Take the newest record; another boot id is another process."""
        previous, self.record, self.is_listed = self.record, record, True
        self._was_updated.set()
        if record.boot_id != previous.boot_id:
            await self.stop("another process took its place")
        elif self.session is None and record.state is not previous.state:
            await self.stop("its state changed")
        if self._task.done() and record.state is not ReplicaState.STARTING:
            self._task = asyncio.create_task(self._keep_connected())

    async def stop(self, reason: str) -> None:
        await cancelled(self._task)
        if not self._task.cancelled() and (error := self._task.exception()):
            log.error("replica_broke", replica=self.record.replica_id, error=repr(error))
        session, self.session = self.session, None
        if session is not None:
            await session.close(reason)

    async def _keep_connected(self) -> None:
        delay = FIRST_DELAY_S
        while self.is_listed:
            heartbeat_at = self.record.heartbeat_at
            session = EngineSession(self.record, self._options)
            try:
                await session.open()
            except (SessionFailed, OSError) as error:
                log.info("session_not_opened", replica=self.record.replica_id, reason=str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY_S)
            else:
                delay = FIRST_DELAY_S
                await self._hold(session)
                heartbeat_at = self.record.heartbeat_at
            await self._proof_of_life(heartbeat_at)

    async def _proof_of_life(self, since: float) -> None:
        """The record may outlive its process, and another one may already answer at its address."""
        while self.record.heartbeat_at <= since + PROOF_OF_LIFE_S:
            self._was_updated.clear()
            await self._was_updated.wait()

    async def _hold(self, session: EngineSession) -> None:
        self.session = session
        log.info("session_opened", replica=self.record.replica_id, model=self.record.model)
        if self._on_description is not None and session.description is not None:
            self._on_description(session.description)
        reason = await session.wait_lost()
        self.session = None
        log.warning("session_lost", replica=self.record.replica_id, reason=reason)
        await session.close(reason)
