"""What a body asks for: an order, and the tokens of its prompt."""

from api_keys.principal import Principal
from gateway.messages.body import (
    AnyChoice,
    AutoChoice,
    CountTokensBody,
    MessagesBody,
    NoChoice,
    OneChoice,
)
from gateway.messages.conversation import chat_messages_of
from gateway.models_endpoint import text_model
from gateway.orders.order import Order, denied_prompt, order_of
from gateway.orders.response_format import constraint_of_schema
from gateway.orders.tools import Function, ToolUse, constrained, tool_use_of
from gateway.services import Services
from inference_engine.contract.events import Description
from inference_engine.contract.requests import Constraint
from tenants.errors import Denied
from text.errors import PromptError
from text.model_text import ModelText

ENDPOINT = "/v1/messages"
FORMAT = "output_config.format"

_CHOICES: dict[type, str] = {AutoChoice: "auto", AnyChoice: "required", NoChoice: "none"}
_PARAMS = {"stop": "stop_sequences", "response_format": FORMAT}
"""Fields that other endpoints know by another name."""


async def messages_order(
    services: Services, principal: Principal, body: MessagesBody
) -> tuple[Order, Description]:
    """Raises Denied."""
    description = await text_model(services, principal, body.model)
    text = await services.texts.get(description)
    tools = _tools_of(body)
    try:
        order = order_of(
            body.sampling_fields(),
            description,
            endpoint=ENDPOINT,
            prompts=[await prompt_of(body, tools, text)],
            max_tokens=body.max_tokens,
            logprobs=None,
            constraint=constrained(tools, text.tool_syntax, _answer(body)),
            tools=tools,
        )
    except Denied as denied:
        raise renamed(denied) from None
    return order, description


async def num_tokens(services: Services, principal: Principal, body: CountTokensBody) -> int:
    """Of the prompt. Raises Denied."""
    description = await text_model(services, principal, body.model)
    text = await services.texts.get(description)
    return len(await prompt_of(body, _tools_of(body), text))


async def prompt_of(body: CountTokensBody, tools: ToolUse | None, text: ModelText) -> list[int]:
    """Raises Denied."""
    messages = chat_messages_of(body)
    try:
        return await text.render_chat(messages, tools=tools.shown() if tools else None)
    except PromptError as error:
        denied = denied_prompt(error)
        denied.param = "messages"
        raise denied from None


def renamed(denied: Denied) -> Denied:
    denied.param = _PARAMS.get(denied.param or "", denied.param)
    return denied


def _tools_of(body: CountTokensBody) -> ToolUse | None:
    """Raises Denied."""
    choice = body.tool_choice
    functions = [
        Function(name=tool.name, description=tool.description, parameters=tool.input_schema)
        for tool in body.tools or ()
    ]
    one_at_a_time = getattr(choice, "disable_parallel_tool_use", None)
    only = choice.name if isinstance(choice, OneChoice) else None
    return tool_use_of(functions, _CHOICES.get(type(choice)), only, not one_at_a_time)


def _answer(body: MessagesBody) -> Constraint | None:
    if body.output_config is None or body.output_config.format is None:
        return None
    return constraint_of_schema(body.output_config.format.schema, f"{FORMAT}.schema")
