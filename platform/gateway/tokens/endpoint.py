"""POST /tokenize and /detokenize: what a prompt is to a model, without any work for an engine."""

import msgspec

from api_keys.principal import Principal
from gateway.callers import caller_of
from gateway.chat.tools import tools_of
from gateway.models_endpoint import described
from gateway.orders.logit_settings import check_token_ids
from gateway.orders.neutral import NEUTRAL_IN_MESSAGE, check_neutral
from gateway.orders.order import denied_prompt
from gateway.runs.token_names import token_name
from gateway.services import Services
from gateway.tokens.body import (
    NEUTRAL_IN_TOKENIZE,
    DetokenizeBody,
    Detokenized,
    TokenizeBody,
    Tokenized,
)
from gateway.transport.connection import serve_body
from gateway.transport.exchange import Exchange
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from text.errors import PromptError
from text.model_text import ModelText

_tokenize = StrictDecoder(TokenizeBody)
_detokenize = StrictDecoder(DetokenizeBody)


async def tokenize(exchange: Exchange, services: Services) -> None:
    principal = await caller_of(exchange)
    await serve_body(exchange, lambda raw: _answer_tokens(exchange, services, principal, raw))


async def _answer_tokens(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    body: TokenizeBody = _tokenize.decode(raw)
    _check(body)
    description = await _meant(services, principal, body.model)
    text = await services.texts.get(description)
    tokens = await _tokens_of(body, text)
    names = [token_name(text.token_bytes(token)) for token in tokens] if body.return_token_strs else None
    answer = Tokenized(len(tokens), description.context_length, tokens, names)
    await exchange.send_json(200, answer)


def _check(body: TokenizeBody) -> None:
    check_neutral(body, NEUTRAL_IN_TOKENIZE)
    if (body.prompt is None) == (body.messages is None):
        raise Denied(Code.INVALID_REQUEST, "Give either 'prompt' or 'messages'.", param="prompt")
    if body.messages is None and (body.tools or body.add_generation_prompt is not None):
        param = "tools" if body.tools else "add_generation_prompt"
        raise Denied(Code.INVALID_REQUEST, f"'{param}' goes with 'messages' only.", param=param)
    if body.messages is not None and body.add_special_tokens:
        message = "A chat template writes its special tokens itself."
        raise Denied(Code.INVALID_REQUEST, message, param="add_special_tokens")
    for index, one in enumerate(body.messages or ()):
        check_neutral(one, NEUTRAL_IN_MESSAGE, f"messages[{index}].")


async def _tokens_of(body: TokenizeBody, text: ModelText) -> list[int]:
    """Raises Denied."""
    try:
        if body.prompt is not None:
            return await text.encode(body.prompt, add_special_tokens=body.add_special_tokens is not False)
        tools = tools_of(body.tools, None, None)
        return await text.render_chat(
            [msgspec.to_builtins(message) for message in body.messages or ()],
            tools=tools.shown() if tools else None,
            add_generation_prompt=body.add_generation_prompt is not False,
        )
    except PromptError as error:
        raise denied_prompt(error) from None


async def detokenize(exchange: Exchange, services: Services) -> None:
    principal = await caller_of(exchange)
    await serve_body(exchange, lambda raw: _answer_text(exchange, services, principal, raw))


async def _answer_text(exchange: Exchange, services: Services, principal: Principal, raw: bytes) -> None:
    body: DetokenizeBody = _detokenize.decode(raw)
    description = await _meant(services, principal, body.model)
    if len(body.tokens) > description.context_length:
        message = f"At most {description.context_length} tokens, the model's context, are accepted."
        raise Denied(Code.CONTEXT_LENGTH_EXCEEDED, message, param="tokens")
    check_token_ids(body.tokens, description.vocab_size, "tokens")
    text = await services.texts.get(description)
    await exchange.send_json(200, Detokenized(text.decode(body.tokens, skip_special_tokens=False)))


async def _meant(services: Services, principal: Principal, name: str | None) -> Description:
    """The model named, or the only one that there is for this key. Raises Denied."""
    if name is not None:
        return await described(services, principal, name)
    usable = [one for model, one in services.fleet.models().items() if principal.may_use(model)]
    if len(usable) != 1:
        message = f"Name the 'model': {len(usable)} are ready for this API key."
        raise Denied(Code.INVALID_REQUEST, message, param="model")
    return usable[0]
