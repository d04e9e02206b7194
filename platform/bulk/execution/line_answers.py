"""What a line asks for, and how its answer is put together, for each endpoint that a batch may name."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from api_keys.principal import Principal
from gateway.chat.endpoint import chat_order
from gateway.chat.format import ChatFormat
from gateway.completions.best_of import best_of
from gateway.completions.endpoint import completion_order
from gateway.completions.format import CompletionFormat
from gateway.orders.order import Order
from gateway.responses.answer import ResponseAnswer
from gateway.responses.endpoint import decoder as response_decoder
from gateway.responses.request import read_request
from gateway.runs.answer import AnswerFormat, Collected
from gateway.runs.choice import Choice, Piece
from gateway.runs.journey import FormatMaker
from gateway.runs.run import Run
from gateway.services import Services
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied

BULK_TIER = "flex"
NUM_ID_BYTES = 12


class LineAnswer(Protocol):
    """An answer while it is made."""

    def begin(self, choices: Sequence[Choice]) -> None: ...

    def take(self, choice: Choice, piece: Piece) -> None: ...

    def whole(self, run: Run) -> dict[str, Any]:
        """The body that a request would have got, once every choice has ended."""


class Asked(NamedTuple):
    order: Order
    description: Description
    answer: LineAnswer


Reader = Callable[[Services, Principal, bytes, str], Awaitable[Asked]]
OrderMaker = Callable[[Services, Principal, bytes], Awaitable[tuple[Order, Description]]]


class FormattedAnswer:
    """Of chat and text completions."""

    def __init__(self, answer: AnswerFormat, order: Order) -> None:
        self._answer, self._order = answer, order
        self._collected: list[Collected] = []

    def begin(self, choices: Sequence[Choice]) -> None:
        self._collected = [Collected(choice, choice.index) for choice in choices]

    def take(self, choice: Choice, piece: Piece) -> None:
        self._collected[choice.index].add(piece)

    def whole(self, run: Run) -> dict[str, Any]:
        return self._answer.whole(best_of(self._collected, self._order), run.usage())


class ResponseLine:
    """Of a response, which is never kept: it is in the output file."""

    def __init__(self, answer: ResponseAnswer) -> None:
        self._answer = answer

    def begin(self, choices: Sequence[Choice]) -> None:
        for choice in choices:
            self._answer.opening(choice)

    def take(self, choice: Choice, piece: Piece) -> None:
        self._answer.piece(choice, piece)

    def whole(self, run: Run) -> dict[str, Any]:
        self._answer.finish(run.choices[0])
        return self._answer.whole()


def _completions(make_order: OrderMaker, make_format: FormatMaker) -> Reader:
    async def read(services: Services, principal: Principal, body: bytes, name: str) -> Asked:
        """Raises Denied."""
        order, description = await make_order(services, principal, body)
        order = _as_bulk(order)
        text = await services.texts.get(description)
        answer = make_format(name, order, description.fingerprint, text)
        return Asked(order, description, FormattedAnswer(answer, order))

    return read


async def _response(services: Services, principal: Principal, body: bytes, name: str) -> Asked:
    """Raises Denied."""
    number = secrets.token_hex(NUM_ID_BYTES)
    given, description = await read_request(services, principal, response_decoder.decode(body), number)
    request = replace(given, order=_as_bulk(given.order), is_stored=False)
    text = await services.texts.get(description)
    return Asked(request.order, description, ResponseLine(ResponseAnswer(request, text)))


def _as_bulk(order: Order) -> Order:
    """Raises Denied."""
    if order.stream:
        message = "'stream' makes no sense in a batch; it may only be false."
        raise Denied(Code.UNSUPPORTED_PARAMETER, message, param="stream")
    return replace(order, service_tier=BULK_TIER)


READERS: dict[str, Reader] = {
    "/v1/chat/completions": _completions(chat_order, ChatFormat),
    "/v1/completions": _completions(completion_order, CompletionFormat),
    "/v1/responses": _response,
}
