"""Who asks, for what passes no gate."""

from admission.decision import suspended, wrong_network
from admission.freshness import confirmed
from api_keys.authentication import authenticate
from api_keys.networks import is_within
from api_keys.principal import Principal
from gateway.transport.exchange import Exchange


async def caller_of(exchange: Exchange) -> Principal:
    """As the policy is now. Raises Denied."""
    return await checked_caller(exchange.header(b"authorization"), exchange.address)


async def checked_caller(authorization: bytes | None, address: str) -> Principal:
    """Raises Denied."""
    principal = await confirmed(await authenticate(authorization))
    check_standing(principal, address)
    return principal


def check_standing(principal: Principal, address: str) -> None:
    """Raises Denied."""
    if principal.is_suspended:
        raise suspended()
    if not is_within(principal.allowed_networks, address):
        raise wrong_network()
