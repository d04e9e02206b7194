"""Which model a name stands for: as the policy is now, whatever this process has cached of the key."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from admission.decision import model_not_found
from api_keys.authentication import authenticate
from api_keys.models import ApiKey
from gateway.models_endpoint import described, list_models
from inference_engine.contract.codes import Code
from tenants.errors import Denied
from tenants.models import Tenant
from tenants.services import update_tenant

InThread = Callable[..., Awaitable[Any]]
pytestmark = pytest.mark.usefixtures("loop_store")


class Fleet:
    """Serves m and n; a model is described by its name."""

    def models(self) -> dict[str, Any]:
        return {name: SimpleNamespace(model=name, **SHAPE) for name in ("m", "n")}

    def describe(self, model: str) -> str:
        if model not in ("m", "n"):
            raise model_not_found(model)
        return model


SHAPE = {"created": 0, "context_length": 10, "max_request_tokens": 10}
SERVICES: Any = SimpleNamespace(fleet=Fleet())


async def meant(header: str, name: str) -> object:
    """The model that a request with this key is for, or why it is refused before the gate."""
    try:
        return await described(SERVICES, await authenticate(header), name)
    except Denied as denied:
        return denied.code


@pytest.fixture
def header(key_and_secret: tuple[ApiKey, str]) -> str:
    return f"Bearer {key_and_secret[1]}"


async def test_an_alias_holds_from_the_next_request_on(
    header: str, tenant: Tenant, in_thread: InThread
) -> None:
    assert await meant(header, "best") is Code.MODEL_NOT_FOUND
    await in_thread(update_tenant, tenant, model_aliases={"best": "m"})
    assert await meant(header, "best") == "m"
    await in_thread(update_tenant, tenant, model_aliases={"best": "n"})
    assert await meant(header, "best") == "n"
    await in_thread(update_tenant, tenant, model_aliases={})
    assert await meant(header, "best") is Code.MODEL_NOT_FOUND


async def test_a_list_of_models_made_longer_again_shuts_nobody_out(
    header: str, tenant: Tenant, in_thread: InThread, store: redis.Redis
) -> None:
    """No request came to the gate any more, where a policy of the past is noticed."""
    await in_thread(update_tenant, tenant, allowed_models=["n"])
    assert await meant(header, "m") is Code.MODEL_NOT_FOUND
    await in_thread(update_tenant, tenant, allowed_models=["m", "n"])
    assert await meant(header, "m") == "m"


async def test_the_list_of_models_is_of_now(
    header: str, tenant: Tenant, in_thread: InThread, client: Any
) -> None:
    for allowed, shown in ((None, [b"m", b"n"]), (["n"], [b"n"]), (["m"], [b"m"])):
        await in_thread(update_tenant, tenant, allowed_models=allowed)
        asked = client("GET", "/v1/models", {"authorization": header})
        await list_models(asked.exchange(), SERVICES)
        assert [name for name in (b"m", b"n") if b'"id":"%b"' % name in asked.body] == shown
