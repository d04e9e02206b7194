"""All engines that this process talks to."""

import asyncio
from collections.abc import Callable, Collection

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from admission.decision import model_not_found
from admission.facts import FleetLoad
from fleet.cancelling import cancelled
from fleet.registry import read_records
from fleet.replica import Replica
from fleet.router import least_loaded
from fleet.session import EngineSession, SessionOptions
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from inference_engine.contract.registry import ReplicaRecord, ReplicaState
from tenants.errors import Denied

log = structlog.get_logger("fleet")

POLL_INTERVAL_S = 0.25
POLL_TIMEOUT_S = 2.0


class Fleet:
    """Follows the registry and holds a session with every ready replica. One for each event loop."""

    def __init__(
        self,
        redis: Redis,
        *,
        on_description: Callable[[Description], None] | None = None,
        poll_interval_s: float = POLL_INTERVAL_S,
        session_options: SessionOptions | None = None,
    ) -> None:
        """`on_description` is called whenever an engine has told what it serves."""
        self._redis = redis
        self._on_description = on_description
        self._poll_interval_s = poll_interval_s
        self._session_options = session_options or SessionOptions()
        self._replicas: dict[str, Replica] = {}
        self._known: dict[str, Description] = {}
        self._num_routed = 0
        self._can_see_registry = True
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look once, then keep looking; an unreachable registry doesn't stop the start."""
        await self._look()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            await cancelled(self._task)
        replicas, self._replicas = list(self._replicas.values()), {}
        await asyncio.gather(*(replica.stop("this gateway is stopping") for replica in replicas))

    # what is there

    def is_ready(self) -> bool:
        return any(replica.is_ready for replica in self._replicas.values())

    def models(self) -> dict[str, Description]:
        """Models that can be served now."""
        return {session.record.model: description for session, description in self._described()}

    def describe(self, model: str) -> Description:
        """Raises Denied: NO_READY_REPLICA for a model that was served before (or when nothing is known yet),
        MODEL_NOT_FOUND for any other."""
        for session, description in self._described():
            if session.record.model == model:
                return description
        raise self._absent(model)

    def route(self, model: str) -> EngineSession:
        """The least loaded ready replica. Raises Denied as `describe` does."""
        session = least_loaded(session for session, _ in self._described() if session.record.model == model)
        if session is None:
            raise self._absent(model)
        self._note_routed(session)
        return session

    def equal_to(
        self, description: Description, num_tokens: int, besides: Collection[EngineSession]
    ) -> EngineSession | None:
        """The least loaded one that gives the same tokens and has room for a request of so many."""
        session = least_loaded(
            session
            for session, other in self._described()
            if session not in besides
            and other.max_request_tokens >= num_tokens
            and _numbers_of(other) == _numbers_of(description)
        )
        if session is not None:
            self._note_routed(session)
        return session

    def _note_routed(self, session: EngineSession) -> None:
        self._num_routed += 1
        session.routed_at = self._num_routed

    def load(self, model: str) -> FleetLoad:
        """How busy the replicas are that could take a request for this model."""
        sessions = [session for session, _ in self._described() if session.record.model == model]
        waiting = [session.stats.num_waiting + session.num_sent_since_stats for session in sessions]
        return FleetLoad(len(sessions), min(waiting, default=0))

    def sessions(self) -> list[EngineSession]:
        """Open ones, with replicas that take requests."""
        return [session for session, _ in self._described()]

    def replicas(self) -> list[Replica]:
        return list(self._replicas.values())

    def _described(self) -> list[tuple[EngineSession, Description]]:
        found = []
        for replica in self._replicas.values():
            session = replica.session
            if replica.is_ready and session is not None and session.description is not None:
                self._known[session.record.model] = session.description
                found.append((session, session.description))
        return found

    def _absent(self, model: str) -> Denied:
        if model in self._known or not self._known:
            return Denied(Code.NO_READY_REPLICA, f"No engine is ready to serve '{model}'.", retry_after_s=2.0)
        return model_not_found(model)

    # following the registry

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._poll_interval_s)
            try:
                await self._look()
            except Exception:
                log.exception("registry_poll_broke")

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(POLL_TIMEOUT_S):
                records = await read_records(self._redis)
        except (RedisError, OSError, TimeoutError) as error:
            self._tell_of_registry(False, error=str(error))
            return
        self._tell_of_registry(True)
        for record in records.values():
            await self._take(record)
        await self._forget(records)

    async def _take(self, record: ReplicaRecord) -> None:
        replica = self._replicas.get(record.replica_id)
        if replica is not None:
            await replica.update(record)
        elif record.state is ReplicaState.READY:
            replica = Replica(record, self._session_options, self._on_description)
            self._replicas[record.replica_id] = replica

    async def _forget(self, records: dict[str, ReplicaRecord]) -> None:
        """An unlisted replica stays as long as its session lives."""
        for replica_id, replica in list(self._replicas.items()):
            if replica_id in records:
                continue
            replica.is_listed = False
            if replica.session is None:
                del self._replicas[replica_id]
                await replica.stop("it left the registry")

    def _tell_of_registry(self, can_see: bool, **facts: str) -> None:
        if can_see != self._can_see_registry:
            self._can_see_registry = can_see
            log.warning("registry_seen" if can_see else "registry_lost", **facts)


def _numbers_of(description: Description) -> tuple[str, ...]:
    """Engines that agree in these go on where another one broke off."""
    return description.model, description.revision, description.tokenizer_hash, description.fingerprint
