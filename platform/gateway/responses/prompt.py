"""A conversation as prompt ids, shortened from its beginning where the client allows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.orders.order import denied_prompt
from gateway.responses.chat_messages import messages_of
from gateway.responses.items import Item
from inference_engine.contract.codes import Code
from text.errors import PromptError
from text.model_text import ModelText

Tools = Sequence[Mapping[str, Any]] | None


class ConversationPrompt:
    def __init__(
        self, text: ModelText, instructions: str | None, items: Sequence[Item], tools: Tools
    ) -> None:
        self._text = text
        self._instructions = instructions
        self._items = items
        self._tools = tools

    async def whole(self) -> list[int]:
        """Raises Denied."""
        return await self._without(0)

    async def shortened(self, max_tokens: int) -> list[int]:
        """As many of the last items as fit in `max_tokens`; the instructions stay. Raises Denied."""
        if (ids := await self._fitting(0, max_tokens)) is not None:
            return ids
        too_few, enough = 0, len(self._items) - 1
        found = await self._without(enough)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if (ids := await self._fitting(middle, max_tokens)) is None:
                too_few = middle
            else:
                enough, found = middle, ids
        return found

    async def _fitting(self, num_dropped: int, max_tokens: int) -> list[int] | None:
        try:
            ids = await self._render(num_dropped)
        except PromptError as error:
            if error.code is not Code.CONTEXT_LENGTH_EXCEEDED:
                raise _of_input(error) from None
            return None
        return ids if len(ids) <= max_tokens else None

    async def _without(self, num_dropped: int) -> list[int]:
        try:
            return await self._render(num_dropped)
        except PromptError as error:
            raise _of_input(error) from None

    async def _render(self, num_dropped: int) -> list[int]:
        """Outputs of calls that were dropped go with them."""
        kept = list(self._items[num_dropped:])
        while num_dropped and len(kept) > 1 and kept[0]["type"] == "function_call_output":
            kept.pop(0)
        return await self._text.render_chat(messages_of(self._instructions, kept), tools=self._tools)


def _of_input(error: PromptError) -> Exception:
    denied = denied_prompt(error)
    denied.param = "input"
    return denied
