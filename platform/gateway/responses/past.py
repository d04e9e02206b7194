"""What a response continues: the conversation before it, and items that its input only names."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from api_keys.principal import Principal
from conversations.models import StoredResponse
from gateway.responses.ids import place_of
from gateway.responses.items import Item, ItemReference
from gateway.responses.keeping import ResponseStore
from inference_engine.contract.codes import Code
from tenants.errors import Denied


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
        return [await self._item(one) if isinstance(one, ItemReference) else one for one in given]

    async def _item(self, reference: ItemReference) -> Item:
        place = place_of(reference.id)
        response = None
        if place is not None:
            response = await self.store.find(self.principal.tenant_id, place.response_id)
        if place is not None and response is not None:
            items = input_of(response) if place.is_input else output_of(response)
            for item in items:
                if item["id"] == reference.id:
                    return item
        raise Denied(Code.NOT_FOUND, f"Item with id '{reference.id[:80]}' not found.", param="input")


async def past_of(store: ResponseStore, principal: Principal, previous_id: str | None) -> Past:
    """Raises Denied: NOT_FOUND where the conversation isn't there in full."""
    if previous_id is None:
        return Past(store, principal)
    responses = await store.conversation(principal.tenant_id, previous_id)
    if responses is None:
        message = f"Previous response with id '{previous_id}' not found."
        raise Denied(Code.NOT_FOUND, message, param="previous_response_id")
    return Past(store, principal, responses)


def input_of(response: StoredResponse) -> list[Item]:
    found: list[Item] = msgspec.json.decode(response.input_items)
    return found


def output_of(response: StoredResponse) -> list[Item]:
    body: dict[str, Any] = msgspec.json.decode(response.body)
    items: list[Item] = body["output"]
    return items
