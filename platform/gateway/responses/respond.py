"""Makes one response, for HTTP and for sockets: through the gate, to its events, into the store."""

import asyncio
from datetime import UTC, datetime, timedelta

from django.conf import settings

from conversations.models import StoredResponse
from gateway.responses.answer import ResponseAnswer
from gateway.responses.request import ResponseRequest
from gateway.responses.running import Making
from gateway.runs.chunks import encode
from gateway.runs.event_answer import Event, EventOutput, EventSink
from gateway.runs.journey import Caller, travel
from gateway.services import Services
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied


async def respond(
    services: Services, caller: Caller, request: ResponseRequest, description: Description, sink: EventSink
) -> ResponseAnswer:
    """Raises Denied where the client has been told of no response yet, or wanted none of its events."""
    answer = ResponseAnswer(request, await services.texts.get(description))
    output = EventOutput(answer, sink)
    making = Making(caller.principal.tenant_id, request.id, output)
    with services.running.listed(making):
        try:
            run = await travel(services, caller, request.order, description, output)
            events = answer.finish(run.choices[0])
        except Denied as denied:
            events = _broken_off(answer, output, making, sink, denied)
        except asyncio.CancelledError:
            raise _cancelled_early(making) from None
        if request.is_stored:
            answer.is_kept = await services.responses.keep(stored(answer, caller))
    await sink.end([*events, answer.last_event()], answer.whole())
    return answer


def _broken_off(
    answer: ResponseAnswer, output: EventOutput, making: Making, sink: EventSink, denied: Denied
) -> list[Event]:
    """Raises the denial where it is for the caller to tell."""
    if output.run is None:
        raise denied
    choice = output.run.choices[0]
    if making.is_cancelled:
        return answer.cancel(choice)
    if not sink.takes_failures:
        raise denied
    return answer.fail(denied, choice)


def _cancelled_early(making: Making) -> BaseException:
    """By the client, before there was a response, or because nobody waits for it any more."""
    task = asyncio.current_task()
    if not making.is_cancelled or task is None or task.uncancel():
        return asyncio.CancelledError()
    return Denied(Code.CLIENT_GONE, "The response was cancelled before it began.")


def stored(answer: ResponseAnswer, caller: Caller) -> StoredResponse:
    now = datetime.now(UTC)
    request = answer.request
    return StoredResponse(
        id=request.id,
        tenant_id=int(caller.principal.tenant_id),
        model=request.order.model,
        body=encode(answer.whole()).decode(),
        input_items=encode(request.input_items).decode(),
        ancestors=list(request.ancestors),
        created_at=now,
        expires_at=now + timedelta(days=settings.OCTAVO_RESPONSE_DAYS),
    )
