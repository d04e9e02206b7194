"""How many output tokens there is room for behind each prompt."""

from admission.facts import FleetFacts, RequestFacts
from fleet.failover import Route
from gateway.orders.order import Order
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from tenants.models import Feature


def room_of(description: Description, prompt: list[int]) -> int:
    return min(description.context_length, description.max_request_tokens) - len(prompt)


def check_room(description: Description, prompts: list[list[int]]) -> None:
    """Raises Denied for a prompt that leaves no room for the output that must fit behind it."""
    longest, behind = max(map(len, prompts)), description.min_output_tokens
    included = ", output included" if behind else ""
    if longest + behind > description.context_length:
        raise Denied(
            Code.CONTEXT_LENGTH_EXCEEDED,
            f"This model's maximum context length is {description.context_length} tokens{included}; "
            f"the prompt alone has {longest}.",
        )
    if longest + behind > description.max_request_tokens:
        raise Denied(
            Code.KV_POOL_EXCEEDED,
            f"The prompt has {longest} tokens; this server can hold requests of at most "
            f"{description.max_request_tokens}{included}.",
        )


def facts_of(order: Order, request_id: str, description: Description, address: str = "") -> RequestFacts:
    """For the gate: prompts, each once, and outputs of all choices together."""
    max_tokens = order.max_tokens
    if max_tokens is not None:
        rooms = (room_of(description, prompt) for prompt in order.prompts)
        max_tokens = sum(min(max_tokens, room) for room in rooms) * order.num_candidates
    return RequestFacts(
        request_id=request_id,
        model=order.model,
        endpoint=order.endpoint,
        prompt_tokens=sum(map(len, order.prompts)),
        max_tokens=max_tokens,
        user=order.user,
        metadata=order.metadata,
        service_tier=order.service_tier,
        address=address,
        features=features_of(order),
    )


def features_of(order: Order) -> frozenset[Feature]:
    """What the tenant's policy may forbid."""
    asked = {
        Feature.LOGPROBS: order.logprobs is not None,
        Feature.N: order.num_candidates > 1,
        Feature.TOOLS: order.tools is not None,
        Feature.STRUCTURED_OUTPUT: order.constraint is not None and order.constraint_param != "tools",
    }
    return frozenset(feature for feature, is_asked in asked.items() if is_asked)


def fleet_facts_of(order: Order, description: Description) -> FleetFacts | None:
    """The gate compares sums; limits of one request only fit where there is one choice."""
    if len(order.prompts) * order.num_candidates > 1:
        return None
    return FleetFacts(description.context_length, description.max_request_tokens)


def output_limits(order: Order, route: Route, admitted_tokens: int) -> list[int]:
    """For each candidate: what was asked for, what fits, and its even share of what the gate admitted."""
    assert route.description is not None
    rooms = [
        room_of(route.description, prompt) for prompt in order.prompts for _ in range(order.num_candidates)
    ]
    share = max(1, admitted_tokens // len(rooms))
    if order.max_tokens is not None and sum(min(order.max_tokens, room) for room in rooms) <= admitted_tokens:
        share = order.max_tokens
    return [max(1, min(share, room)) for room in rooms]
