"""A request's key becomes a Principal, on the event loop, without a database in the common case."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.utils import timezone

from api_keys.principal import Principal, principal_of
from api_keys.principal_cache import CachedKey, PrincipalCache
from api_keys.scopes import Scope
from api_keys.secrets_format import parse_authorization
from api_keys.selectors import find_key, known_secret_of
from inference_engine.contract.codes import Code
from quotas.epochs import read_epoch
from quotas.selectors import rules_for_key
from tenants.errors import Denied, store_unavailable

log = structlog.get_logger(__name__)

_PURPOSES = {
    Scope.INFERENCE: "inference",
    Scope.BATCH: "files and batches",
    Scope.MANAGEMENT: "management",
}

cache = PrincipalCache()
_loading: dict[str, asyncio.Task[CachedKey | None]] = {}
# Its own two threads: neither the loop nor the console's pages wait for a lookup, nor it for them.
_lookups = ThreadPoolExecutor(max_workers=2, thread_name_prefix="api-key-lookup")


async def authenticate(authorization: bytes | str | None, purpose: Scope = Scope.INFERENCE) -> Principal:
    """Raises Denied: INVALID_API_KEY for whatever is no usable key, STORE_UNAVAILABLE if nobody can tell,
    INSUFFICIENT_PERMISSIONS for a key that is for something other than `purpose`.
    """
    presented = parse_authorization(authorization)
    if presented is None:
        raise _invalid_key()
    return await principal_for(presented.public_id, purpose, presented.digest)


async def principal_for(public_id: str, purpose: Scope, proof: bytes | None = None) -> Principal:
    """Also for work that a key asked for earlier, without `proof`. Raises Denied as authenticate does."""
    cached = cache.get(public_id)
    if cached is None:
        return _usable(await _look_up(public_id), purpose, proof)
    try:
        return _usable(cached, purpose, proof)
    except Denied:  # by what was cached; since then the key may have been rotated, prolonged or given more
        if not await _has_changed(cached.principal):
            raise
    return _usable(await _shared_load(public_id), purpose, proof)


async def reload_principal(principal: Principal) -> Principal:
    """What the database says now, for a principal found to be stale. Raises Denied as authenticate does."""
    return _usable(await _shared_load(principal.key_id), principal.purpose, principal.proof)


def is_current(principal: Principal) -> bool:
    """False once everything known was dropped, as when Redis came back as a new run."""
    return principal.generation == cache.generation


def forget_principals() -> None:
    cache.forget_all()


def _usable(cached: CachedKey | None, purpose: Scope, proof: bytes | None) -> Principal:
    """Raises Denied."""
    if cached is None:
        raise _invalid_key()
    principal, now = cached.principal, timezone.now()
    if principal.expires_at is not None and principal.expires_at <= now:
        raise _invalid_key()
    if proof is not None and not cached.secret.is_known(proof, now):
        raise _invalid_key()
    if purpose.value not in principal.scopes:
        raise Denied(Code.INSUFFICIENT_PERMISSIONS, f"This API key is not for {_PURPOSES[purpose]}.")
    return replace(principal, purpose=purpose, proof=proof, expires_at=_end(cached, proof))


def _end(cached: CachedKey, proof: bytes | None) -> datetime | None:
    """Of the key, or of the grace of a secret that it had."""
    ends = (cached.principal.expires_at, None if proof is None else cached.secret.ends_at(proof))
    return min((end for end in ends if end is not None), default=None)


async def _has_changed(principal: Principal) -> bool:
    """Whether its policy may be another by now. Raises STORE_UNAVAILABLE."""
    epoch = await read_epoch(principal.tenant_id)
    return epoch is None or epoch > principal.policy_epoch


async def _look_up(public_id: str) -> CachedKey | None:
    return None if cache.is_unknown(public_id, time.monotonic()) else await _shared_load(public_id)


async def _shared_load(public_id: str) -> CachedKey | None:
    """Requests that need the same key at the same time share one query."""
    task = _loading.get(public_id)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = asyncio.create_task(_load(public_id))
        _loading[public_id] = task
        task.add_done_callback(lambda done: _forget_loading(public_id, done))
    return await asyncio.shield(task)


def _forget_loading(public_id: str, task: asyncio.Task[CachedKey | None]) -> None:
    if _loading.get(public_id) is task:
        del _loading[public_id]
    if not task.cancelled():
        task.exception()  # seen by those who wait; nobody may be left


async def _load(public_id: str) -> CachedKey | None:
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(_lookups, _query, public_id, cache.generation)
    if found is None:
        cache.forget(public_id)
        cache.put_unknown(public_id, time.monotonic() + settings.OCTAVO_UNKNOWN_KEY_SECONDS)
    else:
        cache.put(public_id, found)
    return found


def _query(public_id: str, generation: int) -> CachedKey | None:
    """On a lookup thread. A revoked key is as unknown as one that never was."""
    close_old_connections()
    try:
        key = find_key(public_id)
        limits = () if key is None else rules_for_key(key.tenant_id, key.pk)
    except (DatabaseError, InterfaceError) as error:
        log.warning("api_key_lookup_failed", error=str(error))
        raise store_unavailable() from error
    finally:
        close_old_connections()
    if key is None or key.revoked_at is not None:
        return None
    return CachedKey(known_secret_of(key), principal_of(key, generation, limits))


def _invalid_key() -> Denied:
    return Denied(Code.INVALID_API_KEY, "Incorrect API key provided.")
