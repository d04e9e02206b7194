"""What a response continues: the conversation before it, and items that its input only names."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from api_keys.principal import Principal
from conversations.models import StoredResponse
from gateway.responses.ids import response_of_item
from gateway.responses.items import Item, ItemReference
from gateway.responses.keeping import ResponseStore
from inference_engine.contract.codes import Code
from tenants.errors import Denied

MAX_RESPONSES = 1000
"""In one conversation."""
MAX_REFERRED = 100
"""Responses whose items one input may name."""


@dataclass(frozen=True, slots=True)
class Past:
    store: ResponseStore
    principal: Principal
    responses: Sequence[StoredResponse] = field(default_factory=list)
    """The first one first."""

    @property
    def ids(self) -> list[str]:
        return [response.pk for response in self.responses]

    @property
    def items(self) -> list[Item]:
        """What was said on both sides."""
        return [item for response in self.responses for item in (*input_of(response), *output_of(response))]

    async def resolved(self, given: Sequence[Item | ItemReference]) -> list[Item]:
        """Raises Denied for a reference to what isn't there."""
        references = [one.id for one in given if isinstance(one, ItemReference)]
        known = await self._items_of(references) if references else {}
        return [_known(known, one.id) if isinstance(one, ItemReference) else one for one in given]

    async def _items_of(self, references: Sequence[str]) -> dict[str, Item]:
        """By id, of all responses that the references name."""
        wanted = {found for one in references if (found := response_of_item(one)) is not None}
        if len(wanted) > MAX_REFERRED:
            message = f"'input' refers to items of more than {MAX_REFERRED} responses."
            raise Denied(Code.INVALID_REQUEST, message, param="input")
        responses = [await self.store.find(self.principal.tenant_id, response_id) for response_id in wanted]
        return {
            item["id"]: item
            for response in responses
            if response is not None
            for item in (*input_of(response), *output_of(response))
        }


def _known(items: dict[str, Item], item_id: str) -> Item:
    """Raises Denied: NOT_FOUND."""
    item = items.get(item_id)
    if item is None:
        raise Denied(Code.NOT_FOUND, f"Item with id '{item_id[:80]}' not found.", param="input")
    return item


async def past_of(store: ResponseStore, principal: Principal, previous_id: str | None) -> Past:
    """Raises Denied: NOT_FOUND where the conversation isn't there in full."""
    if previous_id is None:
        return Past(store, principal)
    responses = await store.conversation(principal.tenant_id, previous_id)
    if responses is None:
        message = f"Previous response with id '{previous_id}' not found."
        raise Denied(Code.NOT_FOUND, message, param="previous_response_id")
    if len(responses) >= MAX_RESPONSES:
        message = f"A conversation has at most {MAX_RESPONSES} responses; begin another."
        raise Denied(Code.INVALID_REQUEST, message, param="previous_response_id")
    return Past(store, principal, responses)


def input_of(response: StoredResponse) -> list[Item]:
    found: list[Item] = msgspec.json.decode(response.input_items)
    return found


def output_of(response: StoredResponse) -> list[Item]:
    body: dict[str, Any] = msgspec.json.decode(response.body)
    items: list[Item] = body["output"]
    return items
