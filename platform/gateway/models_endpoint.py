"""GET /v1/models and /v1/models/{id}, and what a model's name in a request stands for."""

import contextlib

from admission.decision import model_not_found, wrong_network
from admission.freshness import confirmed
from api_keys.authentication import authenticate
from api_keys.networks import is_within
from api_keys.principal import Principal
from gateway.services import Services
from gateway.transport.exchange import Exchange
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description, Embedding
from tenants.errors import Denied

MODELS_PATH = "/v1/models/"
OWNER = "octavo"


async def list_models(exchange: Exchange, services: Services) -> None:
    principal = await _caller(exchange)
    models = sorted(services.fleet.models().items())
    data = [_shaped(description) for name, description in models if principal.may_use(name)]
    await exchange.send_json(200, {"object": "list", "data": data})


async def show_model(exchange: Exchange, services: Services) -> None:
    """The id is the rest of the path, slashes included."""
    principal = await _caller(exchange)
    name = principal.model_named(exchange.path.removeprefix(MODELS_PATH))
    description = services.fleet.models().get(name)
    if description is None or not principal.may_use(name):
        raise model_not_found(name)
    await exchange.send_json(200, _shaped(description))


async def _caller(exchange: Exchange) -> Principal:
    """For what passes no gate: as the policy is now. Raises Denied."""
    principal = await confirmed(await authenticate(exchange.header(b"authorization")))
    if not is_within(principal.allowed_networks, exchange.address):
        raise wrong_network()
    return principal


async def described(services: Services, principal: Principal, name: str) -> Description:
    """Of the model that this name stands for. Raises Denied; one that this key may not use doesn't exist.

    What is cached of a key neither refuses nor renames: the gate, which sees that it is old, comes later.
    """
    if name not in principal.model_aliases and principal.may_use(name):
        with contextlib.suppress(Denied):
            return services.fleet.describe(name)
    present = await confirmed(principal)
    model = present.model_named(name)
    if not present.may_use(model):
        raise model_not_found(model)
    return services.fleet.describe(model)


async def text_model(services: Services, principal: Principal, name: str) -> Description:
    """The same of one that generates text. Raises Denied."""
    description = await described(services, principal, name)
    if description.embedding is not None:
        raise _unfit(f"The model '{description.model}' was made for embeddings; it generates no text.")
    return description


async def embedding_model(
    services: Services, principal: Principal, name: str
) -> tuple[Description, Embedding]:
    """The same of one that was made for embeddings, and what it gives. Raises Denied."""
    description = await described(services, principal, name)
    if description.embedding is None:
        raise _unfit(f"The model '{description.model}' generates text; it was not made for embeddings.")
    return description, description.embedding


def _unfit(message: str) -> Denied:
    return Denied(Code.UNSUPPORTED_FEATURE, message, param="model")


def _shaped(description: Description) -> dict[str, object]:
    return {
        "id": description.model,
        "object": "model",
        "created": description.created,
        "owned_by": OWNER,
        "max_model_len": min(description.context_length, description.max_request_tokens),
    }
