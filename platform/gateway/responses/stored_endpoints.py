"""/v1/responses/{id}: look at one that has ended, delete it, or end one that is being made."""

from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from msgspec import Meta, Struct

from conversations.models import StoredResponse
from gateway.callers import caller_of
from gateway.responses.past import input_of
from gateway.services import Services
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import checked_part
from inference_engine.contract.codes import Code
from tenants.errors import Denied

QueryT = TypeVar("QueryT", bound=Struct)

RESPONSES_PATH = "/v1/responses/"
CANCEL = "/cancel"
INPUT_ITEMS = "/input_items"


class NoQuery(Struct, forbid_unknown_fields=True):
    """Nothing may be asked for."""


class ItemListQuery(Struct, forbid_unknown_fields=True):
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"


async def show_response(exchange: Exchange, services: Services) -> None:
    _query(exchange, NoQuery)
    found = await _found(exchange, services, _id_in(exchange.path))
    await exchange.send_bytes(200, found.body.encode())


async def delete_response(exchange: Exchange, services: Services) -> None:
    principal = await caller_of(exchange)
    response_id = _id_in(exchange.path)
    if not await services.responses.delete(principal.tenant_id, response_id):
        raise _not_found(response_id)
    await exchange.send_json(200, {"id": response_id, "object": "response", "deleted": True})


async def cancel_response(exchange: Exchange, services: Services) -> None:
    """Of one that has ended: it, as it is."""
    principal = await caller_of(exchange)
    response_id = _id_in(exchange.path, CANCEL)
    found = await services.responses.find(principal.tenant_id, response_id)
    if found is None and await services.cancel_calls.cancel(principal.tenant_id, response_id):
        found = await services.responses.find(principal.tenant_id, response_id)
    if found is None:
        raise _not_found(response_id)
    await exchange.send_bytes(200, found.body.encode())


async def list_input_items(exchange: Exchange, services: Services) -> None:
    query = _query(exchange, ItemListQuery)
    found = await _found(exchange, services, _id_in(exchange.path, INPUT_ITEMS))
    items = input_of(found)
    if query.order == "desc":
        items.reverse()
    if query.after is not None:
        places = [index for index, item in enumerate(items) if item["id"] == query.after]
        if not places:
            raise Denied(Code.INVALID_REQUEST, f"'after' is no item of {found.pk}.", param="after")
        items = items[places[0] + 1 :]
    await exchange.send_json(200, _page(items, query.limit))


def _query(exchange: Exchange, kind: type[QueryT]) -> QueryT:
    """Raises Denied."""
    return checked_part(dict(parse_qsl(exchange.query, keep_blank_values=True)), kind, "", is_text=True)


def _page(items: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    shown = items[:limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(items) > limit,
    }


async def _found(exchange: Exchange, services: Services, response_id: str) -> StoredResponse:
    """Raises Denied: NOT_FOUND for another tenant's too."""
    principal = await caller_of(exchange)
    found = await services.responses.find(principal.tenant_id, response_id)
    if found is None:
        raise _not_found(response_id)
    return found


def _id_in(path: str, ending: str = "") -> str:
    return path.removeprefix(RESPONSES_PATH).removesuffix(ending)


def _not_found(response_id: str) -> Denied:
    return Denied(Code.NOT_FOUND, f"Response with id '{response_id[:80]}' not found.")
