"""Alice and her team-mate Bob hold management keys of one tenant, Charlie of another; Olga is an operator."""

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from management_callers import Caller, holder
from tenants.models import Tenant
from tenants.services import create_tenant


@pytest.fixture
def alice(tenant: Tenant, store: redis.Redis) -> Caller:
    return holder(tenant, "alice", ["management"])


@pytest.fixture
def bob(alice: Caller) -> Caller:
    assert alice.tenant is not None
    return holder(alice.tenant, "bob", ["inference", "management"])


@pytest.fixture
def charlie(alice: Caller) -> Caller:
    return holder(create_tenant("Rival"), "charlie", ["management"])


@pytest.fixture
def olga(tenant: Tenant, store: redis.Redis) -> Caller:
    client = Client()
    client.force_login(User.objects.create_superuser("olga"))
    return Caller(client, {}, None, None)
