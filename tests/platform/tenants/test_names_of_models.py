"""Names of models in a policy: what a database's JSON can't hold is refused like any other mistake."""

from typing import Any

import pytest
import redis
from django.core.exceptions import ValidationError

from tenants.models import Tenant
from tenants.services import create_tenant


@pytest.mark.parametrize("name", ["a\0", "\ud800", ""])
def test_a_name_that_no_database_holds_is_refused(any_database: str, store: redis.Redis, name: str) -> None:
    policies: list[dict[str, Any]] = [
        {"model_aliases": {name: "m"}},
        {"model_aliases": {"m": name}},
        {"allowed_models": [name]},
    ]
    for policy in policies:
        with pytest.raises(ValidationError):
            create_tenant("Acme", **policy)
    assert not Tenant.objects.exists()


def test_any_other_name_is_kept(any_database: str, store: redis.Redis) -> None:
    create_tenant("Acme", model_aliases={"größe/😀": "m"}, allowed_models=["m", "größe/😀"])
    assert Tenant.objects.get().model_aliases == {"größe/😀": "m"}
