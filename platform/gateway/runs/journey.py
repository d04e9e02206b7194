"""A generation request's way through the gate to an engine and back: the same for endpoints and sockets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from admission.admission import Admission
from admission.gate import gate
from api_keys.principal import Principal
from fleet.failover import Route
from gateway.completions.best_of import best_of
from gateway.orders.order import Order
from gateway.orders.room import check_room, facts_of, fleet_facts_of
from gateway.runs.answer import AnswerFormat, Collected
from gateway.runs.choice import Choice, Piece
from gateway.runs.chunks import DONE
from gateway.runs.run import Run
from gateway.services import Services
from gateway.transport.event_stream import EventStream
from gateway.transport.exchange import Exchange
from inference_engine.contract.events import Description
from text.model_text import ModelText

FormatMaker = Callable[[str, Order, str, ModelText], AnswerFormat]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is, under which id it goes into the ledger, and where it comes from."""

    principal: Principal
    request_id: str
    address: str


class Output(Protocol):
    """Where an answer goes while it is made."""

    async def admitted(self, admission: Admission) -> None:
        """The gate is passed; an engine may still refuse."""

    async def begin(self, run: Run) -> None:
        """An engine has the request: there will be an answer."""

    async def emit(self, choice: Choice, piece: Piece) -> None: ...


async def travel(
    services: Services, caller: Caller, order: Order, description: Description, output: Output
) -> Run:
    """The whole way, settled when this returns. Raises Denied."""
    check_room(description, order.prompts)
    text = await services.texts.get(description)
    facts = facts_of(order, caller.request_id, description, caller.address)
    load = services.fleet.load(order.model)
    async with gate(caller.principal, facts, fleet_facts_of(order, description), load) as admission:
        await output.admitted(admission)
        route = Route(services.fleet, services.fleet.route(order.model))
        async with Run(order, admission, route, text) as run:
            await run.accepted()
            await output.begin(run)
            await run.pump(output.emit)
    return run


async def serve(
    exchange: Exchange,
    services: Services,
    principal: Principal,
    order: Order,
    description: Description,
    make_format: FormatMaker,
) -> None:
    """Raises Denied; after the first byte of a stream the caller turns that into an error event."""
    text = await services.texts.get(description)
    answer = make_format(exchange.id, order, description.fingerprint, text)
    output = StreamedOutput(exchange, answer, order) if order.stream else WholeOutput(exchange, answer, order)
    caller = Caller(principal, exchange.request_id, exchange.address)
    await output.complete(await travel(services, caller, order, description, output))


class StreamedOutput:
    """Each piece is sent as it comes."""

    def __init__(self, exchange: Exchange, answer: AnswerFormat, order: Order) -> None:
        self._exchange = exchange
        self._stream = EventStream(exchange)
        self._answer = answer
        self._order = order
        self._num_open = len(order.prompts) * order.num_candidates
        self._last = b""

    async def admitted(self, admission: Admission) -> None:
        self._exchange.add_headers(admission.headers())

    async def begin(self, run: Run) -> None:
        await self._stream.start()
        for choice in run.choices:
            await self._send(self._answer.opening(choice))

    async def emit(self, choice: Choice, piece: Piece) -> None:
        await self._send(self._answer.piece(choice, piece))
        if choice.finish_reason is not None:
            await self._close(choice)

    async def _close(self, choice: Choice) -> None:
        """The last choice's closing chunk is kept for `complete`."""
        self._num_open -= 1
        self._last = self._answer.closing(choice)
        if self._num_open:
            await self._send(self._last)

    async def complete(self, run: Run) -> None:
        """Once the request is settled, so that a client that reads the end can start its next one."""
        usage = self._answer.usage(run.usage()) if self._order.include_usage else b""
        await self._stream.end(self._last + usage + DONE)

    async def _send(self, data: bytes) -> None:
        if data:
            await self._stream.send(data)


class WholeOutput:
    """Nothing is sent before all is there."""

    def __init__(self, exchange: Exchange, answer: AnswerFormat, order: Order) -> None:
        self._exchange = exchange
        self._answer = answer
        self._order = order
        self._collected: list[Collected] = []

    async def admitted(self, admission: Admission) -> None:
        self._exchange.add_headers(admission.headers())

    async def begin(self, run: Run) -> None:
        self._collected = [Collected(choice, choice.index) for choice in run.choices]

    async def emit(self, choice: Choice, piece: Piece) -> None:
        self._collected[choice.index].add(piece)

    async def complete(self, run: Run) -> None:
        answered = best_of(self._collected, self._order)
        await self._exchange.send_json(200, self._answer.whole(answered, run.usage()))
