"""Is what this process has cached of a key still the policy?"""

from api_keys.authentication import is_current, reload_principal
from api_keys.principal import Principal
from quotas.epochs import publish_epoch, read_epoch


async def confirmed(principal: Principal) -> Principal:
    """The principal, read again if its tenant's policy changed. For what answers without passing the gate.

    Raises Denied: INVALID_API_KEY if the key was revoked, STORE_UNAVAILABLE if nobody can tell.
    """
    known = await read_epoch(principal.tenant_id)
    if known is not None and known <= principal.policy_epoch and is_current(principal):
        return principal
    read_again = await reload_principal(principal)
    if known is None:
        await publish_epoch(read_again.tenant_id, read_again.policy_epoch)
    return read_again
