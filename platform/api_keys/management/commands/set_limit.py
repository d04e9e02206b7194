"""manage.py set_limit TENANT KIND VALUE [--key ID | --model NAME] [--burst N]; VALUE `none` clears it."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from api_keys.models import ApiKey
from api_keys.selectors import find_key
from quotas.limits import LimitKind
from quotas.selectors import find_limit
from quotas.services import clear_limit, set_limit
from tenants.models import Tenant
from tenants.selectors import find_tenant

ACTOR = "command line"


class Command(BaseCommand):
    help = "Set or clear a limit of a tenant, of one of its API keys or of one model."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="a tenant's slug or name")
        parser.add_argument("kind", choices=LimitKind.values)
        parser.add_argument("value", help="a whole number, or none")
        parser.add_argument("--burst", type=int)
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--key", help="a key's public id")
        whose.add_argument("--model", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = find_tenant(options["tenant"])
        if tenant is None:
            raise CommandError(f"no tenant {options['tenant']!r}")
        key = _key_of(tenant, options["key"])
        if options["value"] == "none":
            return _clear(tenant, key, options)
        try:
            value = int(options["value"])
            named = {"model": options["model"], "burst": options["burst"]}
            set_limit(tenant, options["kind"], value, key=key, actor=ACTOR, **named)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        except ValueError as error:
            raise CommandError("the value must be a whole number, or none") from error


def _clear(tenant: Tenant, key: ApiKey | None, options: dict[str, Any]) -> None:
    key_pk = None if key is None else key.pk
    limit = find_limit(tenant.pk, options["kind"], key_pk=key_pk, model=options["model"])
    if limit is not None:
        clear_limit(limit, actor=ACTOR)


def _key_of(tenant: Tenant, public_id: str | None) -> ApiKey | None:
    if public_id is None:
        return None
    key = find_key(public_id)
    if key is None or key.tenant_id != tenant.pk:
        raise CommandError(f"no key {public_id!r} of this tenant")
    return key
