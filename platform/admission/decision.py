"""May this request come in, and with how many output tokens? Pure: the same facts, the same answer."""

from dataclasses import dataclass

from admission.facts import FleetFacts, RequestFacts
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from tenants.errors import Denied


@dataclass(frozen=True, slots=True)
class Admit:
    max_tokens: int
    """Output tokens after every cap."""


def decide(
    principal: Principal, request: RequestFacts, fleet: FleetFacts | None, *, default_output_tokens: int
) -> Admit | Denied:
    return (
        standing(principal, request)
        or _room(request, fleet)
        or Admit(_output_tokens(principal, request, fleet, default_output_tokens))
    )


def standing(principal: Principal, request: RequestFacts) -> Denied | None:
    """What the policy says of this request, whatever the load; also asked again while a stream is open."""
    if principal.is_suspended:
        return Denied(Code.INSUFFICIENT_PERMISSIONS, "This account is suspended.")
    if not principal.may_use(request.model):
        return model_not_found(request.model)
    return None


def model_not_found(model: str) -> Denied:
    """The same for a model that isn't there and for one that this key may not use."""
    message = f"The model '{model}' does not exist or you do not have access to it."
    return Denied(Code.MODEL_NOT_FOUND, message, param="model")


def _room(request: RequestFacts, fleet: FleetFacts | None) -> Denied | None:
    """At least one output token must fit behind the prompt."""
    if fleet is None:
        return None
    prompt = request.prompt_tokens
    if prompt >= fleet.context_length:
        return Denied(
            Code.CONTEXT_LENGTH_EXCEEDED,
            f"This model's maximum context length is {fleet.context_length} tokens, output included; "
            f"the prompt alone has {prompt}.",
        )
    if prompt >= fleet.max_request_tokens:
        return Denied(
            Code.KV_POOL_EXCEEDED,
            f"The prompt has {prompt} tokens; this server can hold requests of at most "
            f"{fleet.max_request_tokens}, output included.",
        )
    return None


def _output_tokens(
    principal: Principal, request: RequestFacts, fleet: FleetFacts | None, default_output_tokens: int
) -> int:
    caps = [default_output_tokens if request.max_tokens is None else request.max_tokens]
    if principal.max_output_tokens is not None:
        caps.append(principal.max_output_tokens)
    if fleet is not None:
        caps.append(min(fleet.context_length, fleet.max_request_tokens) - request.prompt_tokens)
    return min(caps)
