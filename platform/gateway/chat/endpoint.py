"""POST /v1/chat/completions."""

import msgspec

from api_keys.authentication import authenticate
from api_keys.principal import Principal
from gateway.chat.body import ChatBody
from gateway.chat.format import ChatFormat
from gateway.chat.tools import tools_of
from gateway.models_endpoint import text_model
from gateway.orders.neutral import NEUTRAL, NEUTRAL_IN_MESSAGE, check_neutral
from gateway.orders.order import Order, denied_prompt, order_of
from gateway.orders.response_format import constraint_of
from gateway.orders.tools import ToolUse, constrained
from gateway.runs.journey import serve
from gateway.services import Services
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from text.errors import PromptError
from text.model_text import ModelText

_decoder = StrictDecoder(ChatBody)


async def chat_completions(exchange: Exchange, services: Services) -> None:
    principal = await authenticate(exchange.header(b"authorization"))
    await serve_body(exchange, lambda raw: _serve(exchange, services, principal, raw))


async def _serve(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    order, description = await chat_order(services, principal, raw)
    await serve(exchange, services, principal, order, description, ChatFormat)


async def chat_order(services: Services, principal: Principal, raw: bytes) -> tuple[Order, Description]:
    """What a body asks for, and of which model. Raises Denied."""
    body: ChatBody = _decoder.decode(raw)
    _check(body)
    description = await text_model(services, principal, body.model)
    text = await services.texts.get(description)
    tools = tools_of(body.tools, body.tool_choice, body.parallel_tool_calls)
    answer = constraint_of(body.response_format)
    order = order_of(
        body,
        description,
        endpoint="/v1/chat/completions",
        prompts=[await _prompt(body, text, tools)],
        max_tokens=_max_tokens(body),
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        constraint=constrained(tools, text.tool_syntax, answer),
        tools=tools,
    )
    return order, description


def _check(body: ChatBody) -> None:
    check_neutral(body, NEUTRAL)
    for index, one in enumerate(body.messages):
        check_neutral(one, NEUTRAL_IN_MESSAGE, f"messages[{index}].")
    if body.top_logprobs and not body.logprobs:
        message = "'top_logprobs' is only allowed when 'logprobs' is true."
        raise Denied(Code.INVALID_REQUEST, message, param="top_logprobs")


def _max_tokens(body: ChatBody) -> int | None:
    if body.max_completion_tokens is None:
        return body.max_tokens
    if body.max_tokens not in (None, body.max_completion_tokens):
        message = (
            "'max_tokens' and 'max_completion_tokens' differ; the first is the older name of the second."
        )
        raise Denied(Code.INVALID_REQUEST, message, param="max_tokens")
    return body.max_completion_tokens


async def _prompt(body: ChatBody, text: ModelText, tools: ToolUse | None) -> list[int]:
    messages = [msgspec.to_builtins(message) for message in body.messages]
    try:
        return await text.render_chat(messages, tools=tools.shown() if tools else None)
    except PromptError as error:
        raise denied_prompt(error) from None
