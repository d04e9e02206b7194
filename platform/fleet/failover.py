"""A request outlives its engine: another one of equal numbers goes on where the first broke off.

The prompt and every token that had arrived are sent to it, with a higher attempt number; the reader sees one
stream without a gap, and the same one: positions, penalties, seeds and grammars count replayed tokens.
"""

import contextlib
from collections.abc import Callable, Iterator

import msgspec
import structlog

from fleet.failures import EngineLost, GenerationFailed
from fleet.fleet import Fleet
from fleet.generation import Event, Generation
from fleet.session import EngineSession
from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Delta, Description, Finished, Refused, Usage
from inference_engine.contract.registry import ReplicaRecord
from inference_engine.contract.requests import Generate

log = structlog.get_logger("fleet")

MAX_ATTEMPTS = 4


class Route:
    """Where one request's choices go: to one engine at first."""

    def __init__(self, fleet: Fleet, session: EngineSession) -> None:
        self._fleet, self._session = fleet, session
        self.on_move: Callable[[str], None] = lambda replica_id: None
        """Called with the replica that went on."""

    @property
    def record(self) -> ReplicaRecord:
        return self._session.record

    @property
    def description(self) -> Description | None:
        return self._session.description

    def generate(self, message: Generate) -> "UnbrokenGeneration":
        """Raises EngineLost."""
        return UnbrokenGeneration(self, message, self._session.generate(message))

    def others(self, num_tokens: int) -> Iterator[EngineSession]:
        """Those that would give the same tokens and have room for so many, the least loaded first."""
        description, tried = self._session.description, {self._session}
        while description is not None:
            found = self._fleet.equal_to(description, num_tokens, tried)
            if found is None:
                return
            tried.add(found)
            yield found


class UnbrokenGeneration:
    """As a reader sees a `Generation`, over as many engines as it takes."""

    def __init__(self, route: Route, message: Generate, first: Generation) -> None:
        self._route, self._message = route, message
        self._current = first
        self._others = route.others(len(message.prompt_ids) + message.sampling.max_tokens)
        self._output_ids = list(message.output_ids)
        self._is_accepted = False
        self._is_aborted = False
        self._lost: EngineLost | None = None

    # the reader's side of a Generation

    def __aiter__(self) -> "UnbrokenGeneration":
        return self

    async def __anext__(self) -> Event:
        """Raises GenerationFailed where no engine could go on."""
        while True:
            try:
                event = await self._current.__anext__()
            except EngineLost as lost:
                self._lost = lost
                if self._has_all():
                    return self._finished()
                if not self._move():
                    raise
                continue
            if type(event) is Delta:
                self._output_ids += event.token_ids
                return event
            if self._is_news(event):
                return event

    def _is_news(self, event: Event) -> bool:
        """False: of interest here only. Raises EngineLost where those that could go on refuse to."""
        if type(event) is Accepted:
            was_accepted, self._is_accepted = self._is_accepted, True
            return not was_accepted
        if type(event) is Refused and (self._lost is not None or event.code is Code.DRAINING):
            if self._move():
                return False
            if self._lost is not None:
                raise self._lost
        return True

    def abort(self, error: GenerationFailed | None = None) -> None:
        self._is_aborted = True
        self._current.abort(error)

    async def last_word(self) -> Finished | Refused | None:
        return await self._current.last_word()

    @property
    def error(self) -> GenerationFailed | None:
        return self._current.error

    # moving

    def _move(self) -> bool:
        """Whether another engine goes on; it may still refuse."""
        attempt = self._current.attempt + 1
        if self._is_aborted or attempt == MAX_ATTEMPTS:
            return False
        message = msgspec.structs.replace(
            self._message, attempt=attempt, output_ids=list(self._output_ids), group_id=""
        )
        for session in self._others:
            with contextlib.suppress(EngineLost):
                self._current = session.generate(message)
                self._tell(session.record.replica_id)
                return True
        return False

    def _tell(self, replica_id: str) -> None:
        log.warning(
            "request_moved",
            request_id=self._message.request_id,
            replica=replica_id,
            num_replayed=len(self._output_ids),
        )
        self._route.on_move(replica_id)

    def _has_all(self) -> bool:
        """Its engine died between the last token and the word that it was the last."""
        return len(self._output_ids) >= self._message.sampling.max_tokens

    def _finished(self) -> Finished:
        usage = Usage(prompt_tokens=len(self._message.prompt_ids), output_tokens=len(self._output_ids))
        return Finished(
            request_id=self._message.request_id,
            attempt=self._current.attempt,
            reason=FinishReason.LENGTH,
            usage=usage,
        )
