"""May a request come in, as what, and with how many output tokens? Pure: the same facts, the same answer."""

from dataclasses import dataclass

from admission.facts import FleetFacts, FleetLoad, RequestFacts, Rules
from api_keys.networks import is_within
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ServiceClass
from tenants.errors import Denied

SHED_AT = {ServiceClass.INTERACTIVE: 1.0, ServiceClass.STANDARD: 0.75, ServiceClass.BULK: 0.5}
"""Share of the longest queue at which a class is refused: the lowest first."""
SHED_RETRY_AFTER_S = 2.0
MAINTENANCE_RETRY_AFTER_S = 30.0

_CLASSES = list(ServiceClass)
_TIERS = {
    "priority": ServiceClass.INTERACTIVE,
    "default": ServiceClass.STANDARD,
    "flex": ServiceClass.BULK,
}


@dataclass(frozen=True, slots=True)
class Admit:
    max_tokens: int
    """Output tokens after every cap."""
    service_class: ServiceClass


def decide(
    principal: Principal,
    request: RequestFacts,
    fleet: FleetFacts | None,
    load: FleetLoad | None,
    rules: Rules,
) -> Admit | Denied:
    service_class = class_of(request.service_tier, principal.service_class)
    return (
        standing(principal, request)
        or _under_maintenance(rules)
        or _features(principal, request)
        or _room(principal, request, fleet)
        or _capacity(service_class, load, rules)
        or Admit(_output_tokens(principal, request, fleet, rules), service_class)
    )


def standing(principal: Principal, request: RequestFacts) -> Denied | None:
    """What the policy says of this request, whatever the load; also asked again while a stream is open."""
    if principal.is_suspended:
        return suspended()
    if not is_within(principal.allowed_networks, request.address):
        return wrong_network()
    if not principal.may_use(request.model):
        return model_not_found(request.model)
    return None


def suspended() -> Denied:
    return Denied(Code.INSUFFICIENT_PERMISSIONS, "This account is suspended.")


def wrong_network() -> Denied:
    return Denied(Code.INSUFFICIENT_PERMISSIONS, "This API key may not be used from this address.")


def class_of(tier: str | None, granted: ServiceClass) -> ServiceClass:
    """The class that was asked for, but none above the tenant's."""
    wanted = _TIERS.get(tier or "auto", granted)
    return max(wanted, granted, key=_CLASSES.index)


def model_not_found(model: str) -> Denied:
    """The same for a model that isn't there and for one that this key may not use."""
    message = f"The model '{model}' does not exist or you do not have access to it."
    return Denied(Code.MODEL_NOT_FOUND, message, param="model")


def _under_maintenance(rules: Rules) -> Denied | None:
    if rules.maintenance is None:
        return None
    return Denied(Code.MAINTENANCE, rules.maintenance, retry_after_s=MAINTENANCE_RETRY_AFTER_S)


def _features(principal: Principal, request: RequestFacts) -> Denied | None:
    if principal.features is None or request.features <= principal.features:
        return None
    missing = sorted(str(feature.label) for feature in request.features - principal.features)
    return Denied(Code.INSUFFICIENT_PERMISSIONS, f"This account may not use: {', '.join(missing)}.")


def _room(principal: Principal, request: RequestFacts, fleet: FleetFacts | None) -> Denied | None:
    """At least one output token must fit behind the prompt, unless none is wanted."""
    prompt = request.prompt_tokens
    needed = prompt if request.max_tokens == 0 else prompt + 1
    most = principal.max_context_tokens
    if most is not None and needed > most:
        return Denied(
            Code.CONTEXT_LENGTH_EXCEEDED,
            f"Requests of this account may have at most {most} tokens, output included; the prompt alone has "
            f"{prompt}.",
        )
    if fleet is not None and needed > fleet.context_length:
        return Denied(
            Code.CONTEXT_LENGTH_EXCEEDED,
            f"This model's maximum context length is {fleet.context_length} tokens, output included; "
            f"the prompt alone has {prompt}.",
        )
    if fleet is not None and needed > fleet.max_request_tokens:
        return Denied(
            Code.KV_POOL_EXCEEDED,
            f"The prompt has {prompt} tokens; this server can hold requests of at most "
            f"{fleet.max_request_tokens}, output included.",
        )
    return None


def _capacity(service_class: ServiceClass, load: FleetLoad | None, rules: Rules) -> Denied | None:
    """Contended capacity is worth another try soon; absent capacity is another matter."""
    if load is None:
        return None
    if load.num_ready == 0:
        message = "No engine is ready to serve this model."
        return Denied(Code.NO_READY_REPLICA, message, retry_after_s=SHED_RETRY_AFTER_S)
    most = rules.shed_waiting * SHED_AT[service_class]
    if load.num_waiting < most:
        return None
    message = f"{load.num_waiting} requests wait already; class {service_class} is let in below {most:g}."
    return Denied(Code.QUEUE_FULL, message, retry_after_s=SHED_RETRY_AFTER_S)


def _output_tokens(
    principal: Principal, request: RequestFacts, fleet: FleetFacts | None, rules: Rules
) -> int:
    default = principal.default_output_tokens or rules.default_output_tokens
    caps = [default if request.max_tokens is None else request.max_tokens]
    if principal.max_output_tokens is not None:
        caps.append(principal.max_output_tokens)
    if principal.max_context_tokens is not None:
        caps.append(principal.max_context_tokens - request.prompt_tokens)
    if fleet is not None:
        caps.append(min(fleet.context_length, fleet.max_request_tokens) - request.prompt_tokens)
    return min(caps)
