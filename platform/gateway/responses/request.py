"""What one response is asked for: read, looked up and tokenised, ready for the gate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import to_builtins

from api_keys.principal import Principal
from gateway.models_endpoint import text_model
from gateway.orders.neutral import check_neutral
from gateway.orders.order import Order, order_of
from gateway.orders.tools import ToolUse, constrained
from gateway.responses.body import LOGPROBS, NEUTRAL_IN_RESPONSES, ResponseBody
from gateway.responses.ids import response_id_of
from gateway.responses.items import Item, read_input
from gateway.responses.past import Past, past_of
from gateway.responses.prompt import ConversationPrompt
from gateway.responses.text_format import constraint_of_text, shown_text
from gateway.responses.tools import tools_of_response
from gateway.services import Services
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from text.model_text import ModelText

ENDPOINT = "/v1/responses"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    number: str
    """Of the response, 24 hexadecimal digits."""
    order: Order
    input_items: Sequence[Item]
    ancestors: Sequence[str]
    """Ids of the responses that it continues, the first one first."""
    is_stored: bool
    shown: dict[str, Any]
    """What the response object repeats."""

    @property
    def id(self) -> str:
        return response_id_of(self.number)


async def read_request(
    services: Services, principal: Principal, body: ResponseBody, number: str
) -> tuple[ResponseRequest, Description]:
    """Raises Denied."""
    _check(body)
    description = await text_model(services, principal, body.model)
    text = await services.texts.get(description)
    past = await past_of(services.responses, principal, body.previous_response_id)
    given = read_input(body.input, number)
    items = await past.resolved(given)
    tools = tools_of_response(body.tools, body.tool_choice, body.parallel_tool_calls)
    order = order_of(
        body.sampling_fields(),
        description,
        endpoint=ENDPOINT,
        prompts=[await _prompt(body, _prompt_of(body, text, past, items, tools), description)],
        max_tokens=body.max_output_tokens,
        logprobs=(body.top_logprobs or 0) if LOGPROBS in (body.include or ()) else None,
        constraint=constrained(tools, text.tool_syntax, constraint_of_text(body.text)),
        tools=tools,
    )
    request = ResponseRequest(
        number=number,
        order=order,
        input_items=items,
        ancestors=past.ids,
        is_stored=body.store is not False,
        shown=_shown(body, order),
    )
    return request, description


def _check(body: ResponseBody) -> None:
    check_neutral(body, NEUTRAL_IN_RESPONSES)
    if body.top_logprobs and LOGPROBS not in (body.include or ()):
        message = f"'top_logprobs' is only allowed when 'include' has {LOGPROBS!r}."
        raise Denied(Code.INVALID_REQUEST, message, param="top_logprobs")
    if body.stream_options is not None and not body.stream:
        message = "'stream_options' is only allowed when 'stream' is true."
        raise Denied(Code.INVALID_REQUEST, message, param="stream_options")


def _prompt_of(
    body: ResponseBody, text: ModelText, past: Past, items: Sequence[Item], tools: ToolUse | None
) -> ConversationPrompt:
    shown = tools.shown() if tools else None
    return ConversationPrompt(text, body.instructions, [*past.items, *items], shown)


async def _prompt(body: ResponseBody, prompt: ConversationPrompt, description: Description) -> list[int]:
    if body.truncation != "auto":
        return await prompt.whole()
    room = min(description.context_length, description.max_request_tokens)
    return await prompt.shortened(room - min(body.max_output_tokens or 1, room // 2))


def _shown(body: ResponseBody, order: Order) -> dict[str, Any]:
    sampling = order.sampling
    return {
        "model": order.model,
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "max_output_tokens": body.max_output_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_logprobs": body.top_logprobs or 0,
        "text": shown_text(body.text),
        "tools": [{"strict": None, **to_builtins(tool)} for tool in body.tools or ()],
        "tool_choice": body.tool_choice or "auto",
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "truncation": body.truncation or "disabled",
        "metadata": body.metadata or {},
        "user": body.user,
        "service_tier": body.service_tier or "auto",
        "background": False,
        "max_tool_calls": None,
        "reasoning": {"effort": None, "summary": None},
    }
