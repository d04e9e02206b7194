"""What a client asks for, whichever endpoint it came through."""

import secrets
from dataclasses import dataclass, field

from gateway.bodies.fields import SharedFields
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from inference_engine.contract.sampling import SamplingParams
from tenants.errors import Denied
from text.errors import PromptError
from text.stop_strings import checked_stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    model: str
    endpoint: str
    prompts: list[list[int]]
    """One choice each, with the prompt's index as its own."""
    max_tokens: int | None
    """Output tokens of each choice; None where the client names none."""
    sampling: SamplingParams
    """Its max_tokens is set for each choice once the gate has spoken."""
    stop: tuple[str, ...]
    include_stop: bool
    skip_special_tokens: bool
    stream: bool
    include_usage: bool
    return_token_ids: bool
    service_tier: str | None
    user: str
    metadata: dict[str, str] = field(default_factory=dict)


def order_of(
    body: SharedFields,
    description: Description,
    *,
    endpoint: str,
    prompts: list[list[int]],
    max_tokens: int | None,
    logprobs: int | None,
) -> Order:
    """Raises Denied."""
    if body.stream_options is not None and not body.stream:
        raise _invalid("stream_options", "'stream_options' is only allowed when 'stream' is true.")
    return Order(
        model=description.model,
        endpoint=endpoint,
        prompts=prompts,
        max_tokens=max_tokens,
        sampling=_sampling(body, description, max_tokens, logprobs),
        stop=_stops(body),
        include_stop=bool(body.include_stop_str_in_output),
        skip_special_tokens=body.skip_special_tokens is not False,
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        return_token_ids=bool(body.return_token_ids),
        service_tier=body.service_tier,
        user=body.user or "",
        metadata=body.metadata or {},
    )


def _sampling(
    body: SharedFields, description: Description, max_tokens: int | None, logprobs: int | None
) -> SamplingParams:
    """The model's own defaults where the client names no value; a seed is drawn where it names none."""
    defaults = description.generation_defaults
    temperature = body.temperature if body.temperature is not None else defaults.get("temperature", 1.0)
    top_k = body.top_k if body.top_k is not None else int(defaults.get("top_k", 0))
    return SamplingParams(
        seed=body.seed if body.seed is not None else secrets.randbits(64) - 2**63,
        max_tokens=1,
        min_tokens=_min_tokens(body, max_tokens),
        temperature=min(temperature, 2.0),
        top_p=body.top_p if body.top_p is not None else defaults.get("top_p", 1.0),
        top_k=max(top_k, 0),
        min_p=body.min_p or 0.0,
        stop_token_ids=_stop_token_ids(body, description.vocab_size),
        ignore_eos=bool(body.ignore_eos),
        logprobs=logprobs,
    )


def _min_tokens(body: SharedFields, max_tokens: int | None) -> int:
    min_tokens = body.min_tokens or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise _invalid("min_tokens", f"'min_tokens' ({min_tokens}) is more than the output may have.")
    return min_tokens


def _stops(body: SharedFields) -> tuple[str, ...]:
    try:
        return checked_stops(body.stop)
    except PromptError as error:
        raise denied_prompt(error) from None


def _stop_token_ids(body: SharedFields, vocab_size: int) -> tuple[int, ...]:
    token_ids = tuple(body.stop_token_ids or ())
    check_token_ids(token_ids, vocab_size, "stop_token_ids")
    return token_ids


def check_token_ids(token_ids: "tuple[int, ...] | list[int]", vocab_size: int, param: str) -> None:
    """Raises Denied: TOKEN_ID_OUT_OF_RANGE."""
    if token_ids and not (min(token_ids) >= 0 and max(token_ids) < vocab_size):
        message = f"'{param}' holds a token id outside of this model's 0 to {vocab_size - 1}."
        raise Denied(Code.TOKEN_ID_OUT_OF_RANGE, message, param=param)


def denied_prompt(error: PromptError) -> Denied:
    return Denied(error.code, f"{error.message[:1].upper()}{error.message[1:]}.", param=error.param)


def _invalid(param: str, message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param=param)
