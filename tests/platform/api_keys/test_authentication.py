"""A bearer header becomes a principal, without a database where the key is known."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from api_keys import authentication
from api_keys.authentication import authenticate, reload_principal
from api_keys.models import ApiKey
from api_keys.scopes import Scope
from api_keys.services import create_key, revoke_key, rotate_key, update_key
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ServiceClass
from quotas.services import set_limit
from tenants.errors import Denied
from tenants.models import Tenant
from tenants.services import create_tenant

pytestmark = pytest.mark.usefixtures("store")

InThread = Callable[..., Awaitable[Any]]
KeyAndSecret = tuple[ApiKey, str]


async def refusal(header: bytes | str | None) -> Denied:
    with pytest.raises(Denied) as caught:
        await authenticate(header)
    return caught.value


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The ids that were looked up in the database, for real."""
    seen: list[str] = []
    query = authentication.find_key

    def counted(public_id: str) -> ApiKey | None:
        seen.append(public_id)
        return query(public_id)

    monkeypatch.setattr(authentication, "find_key", counted)
    yield seen


async def test_a_key_without_the_inference_scope_is_refused_from_the_next_request_on(
    key_and_secret: KeyAndSecret, in_thread: InThread
) -> None:
    key, plaintext = key_and_secret
    principal = await authenticate(f"Bearer {plaintext}")
    await in_thread(update_key, key, scopes=["batch", "management"])
    with pytest.raises(Denied) as caught:
        await reload_principal(principal)
    assert caught.value.code is Code.INSUFFICIENT_PERMISSIONS
    assert (await refusal(f"Bearer {plaintext}")).code is Code.INSUFFICIENT_PERMISSIONS


async def test_a_key_names_its_tenant_and_limits(any_database: str, in_thread: InThread) -> None:
    tenant = await in_thread(
        create_tenant, "Acme", weight=2.0, service_class="bulk", allowed_models=["a", "b"]
    )
    key, plaintext = await in_thread(create_key, tenant, "k", allowed_models=["b", "c"])
    await in_thread(set_limit, tenant, "concurrent", 4)
    await in_thread(set_limit, tenant, "concurrent", 2, key=key)

    principal = await authenticate(f"Bearer {plaintext}")

    assert (principal.tenant_id, principal.key_id) == (str(tenant.pk), key.public_id)
    assert (principal.weight, principal.service_class) == (2.0, ServiceClass.BULK)
    assert [(rule.scope, rule.value) for rule in principal.limits] == [("tenant", 4), ("key", 2)]
    assert [principal.may_use(model) for model in "abc"] == [False, True, False]


async def test_a_known_key_needs_no_database(key_and_secret: KeyAndSecret, lookups: list[str]) -> None:
    header = f"Bearer {key_and_secret[1]}".encode()
    first = await authenticate(header)
    assert [await authenticate(header) for _ in range(3)] == [first] * 3
    assert lookups == [key_and_secret[0].public_id]


async def test_two_hundred_first_requests_share_one_lookup(
    key_and_secret: KeyAndSecret, lookups: list[str]
) -> None:
    header = f"Bearer {key_and_secret[1]}"
    found = await asyncio.gather(*(authenticate(header) for _ in range(200)))
    assert len(set(found)) == 1 and len(lookups) == 1


async def test_one_impatient_client_does_not_spoil_the_shared_lookup(key_and_secret: KeyAndSecret) -> None:
    header = f"Bearer {key_and_secret[1]}"
    first, second = (asyncio.create_task(authenticate(header)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).key_id == key_and_secret[0].public_id
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_every_wrong_key_gets_the_same_answer(key_and_secret: KeyAndSecret) -> None:
    right = key_and_secret[1]
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    headers = [
        None,
        "Bearer nonsense",
        "Bearer ключ",
        b"Bearer \xff\xfe",
        f"Bearer {wrong}",
        "Bearer octavo_nobody_" + "0" * 64,
    ]
    answers = [await refusal(header) for header in headers]
    assert {(denied.code, denied.message) for denied in answers} == {
        (Code.INVALID_API_KEY, "Incorrect API key provided.")
    }
    assert (await authenticate(f"Bearer {right}")).key_id == key_and_secret[0].public_id


async def test_an_unknown_id_is_looked_up_once_in_a_moment(
    tenant: Tenant, lookups: list[str], settings: Any
) -> None:
    settings.OCTAVO_UNKNOWN_KEY_SECONDS = 60.0
    for _ in range(5):
        await refusal("Bearer octavo_nobody_" + "0" * 64)
    assert lookups == ["nobody"]


async def test_an_expired_key_is_refused_though_it_is_cached(
    key_and_secret: KeyAndSecret,
    in_thread: InThread,
    lookups: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, plaintext = key_and_secret
    end = timezone.now() + timedelta(hours=1)
    await in_thread(update_key, key, expires_at=end)
    assert await authenticate(f"Bearer {plaintext}")
    assert lookups == [key.public_id]
    monkeypatch.setattr(authentication, "timezone", SimpleNamespace(now=lambda: end))
    assert (await refusal(f"Bearer {plaintext}")).code is Code.INVALID_API_KEY
    assert lookups == [key.public_id]


async def test_a_revoked_key_is_refused_when_it_is_loaded_again(
    any_database: str, in_thread: InThread
) -> None:
    key, plaintext = await in_thread(create_key, await in_thread(create_tenant, "Acme"), "k")
    principal = await authenticate(f"Bearer {plaintext}")
    await in_thread(revoke_key, key)
    with pytest.raises(Denied) as caught:
        await reload_principal(principal)
    assert caught.value.code is Code.INVALID_API_KEY
    await refusal(f"Bearer {plaintext}")


async def test_a_rotation_is_in_force_on_the_next_request_with_either_secret(
    key_and_secret: KeyAndSecret, in_thread: InThread
) -> None:
    key, old = key_and_secret
    principal = await authenticate(f"Bearer {old}")
    _, new = await in_thread(rotate_key, key)
    assert (await authenticate(f"Bearer {new}")).key_id == key.public_id
    assert (await refusal(f"Bearer {old}")).code is Code.INVALID_API_KEY
    with pytest.raises(Denied) as caught:
        await reload_principal(principal)
    assert caught.value.code is Code.INVALID_API_KEY


async def test_a_secret_in_grace_is_good_until_the_grace_ends(
    key_and_secret: KeyAndSecret, in_thread: InThread
) -> None:
    key, old = key_and_secret
    principal = await authenticate(f"Bearer {old}")
    _, new = await in_thread(rotate_key, key, grace=timedelta(hours=1))
    assert (await authenticate(f"Bearer {new}")).expires_at is None
    in_grace = await reload_principal(principal)
    assert in_grace.expires_at is not None
    assert in_grace == await authenticate(f"Bearer {old}")
    await in_thread(rotate_key, key)
    with pytest.raises(Denied):
        await reload_principal(in_grace)


async def test_what_an_older_policy_refuses_is_looked_up_again(
    key_and_secret: KeyAndSecret, in_thread: InThread, lookups: list[str]
) -> None:
    key, plaintext = key_and_secret
    header = f"Bearer {plaintext}"
    with pytest.raises(Denied):
        await authenticate(header, Scope.BATCH)
    await in_thread(update_key, key, scopes=["inference", "batch"])
    assert (await authenticate(header, Scope.BATCH)).purpose is Scope.BATCH
    await in_thread(update_key, key, expires_at=timezone.now() - timedelta(days=1))
    with pytest.raises(Denied):
        await reload_principal(await authenticate(header))
    await in_thread(update_key, key, expires_at=None)
    assert await authenticate(header)


async def test_guesses_at_a_known_keys_secret_do_not_reach_the_database(
    key_and_secret: KeyAndSecret, in_thread: InThread, lookups: list[str]
) -> None:
    key, plaintext = key_and_secret
    await in_thread(update_key, key, name="renamed")
    assert await authenticate(f"Bearer {plaintext}")
    for digit in "0123":
        await refusal(f"Bearer octavo_{key.public_id}_" + digit * 64)
    assert lookups == [key.public_id]


async def test_without_a_database_known_keys_are_served_and_others_get_503(
    key_and_secret: KeyAndSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = f"Bearer {key_and_secret[1]}"
    principal = await authenticate(header)
    # The tables are gone from where the lookup threads look; their open connections are dropped.
    nowhere = {**connections.databases["default"], "NAME": "/nonexistent/db.sqlite3"}
    monkeypatch.setitem(connections.databases, "default", nowhere)
    for _ in range(2):  # both lookup threads
        authentication._lookups.submit(connections.close_all).result()
    monkeypatch.setattr(authentication, "_lookups", type(authentication._lookups)(max_workers=1))

    assert await authenticate(header) == principal
    denied = await refusal("Bearer octavo_nobody_" + "0" * 64)
    assert (denied.code, denied.retry_after_s) == (Code.STORE_UNAVAILABLE, 1.0)
    authentication._lookups.shutdown()
