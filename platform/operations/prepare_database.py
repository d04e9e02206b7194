"""Migrations and, on an empty database, the demo tenant, its key and an operator.

    python -m operations.prepare_database

Prints one JSON object for the supervisor, through a pipe: secrets are in it the one time that they are made.
"""

import io
import json
import sys
from typing import Any

import django

DEMO_TENANT = "demo"
OPERATOR = "operator"


def main() -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False, stdout=sys.stderr)
    json.dump(first_run() or {}, sys.stdout)


def first_run() -> dict[str, Any] | None:
    """What was made, all or nothing; None where the demo tenant exists."""
    from django.db import transaction

    from tenants.selectors import find_tenant

    with transaction.atomic():
        return None if find_tenant(DEMO_TENANT) else _make_demo()


def _make_demo() -> dict[str, Any]:
    from django.core.management import call_command

    from api_keys.services import create_key
    from tenants.services import create_tenant

    tenant = create_tenant(DEMO_TENANT, actor="first start")
    _, key = create_key(tenant, "first", actor="first start")
    made: dict[str, Any] = {"tenant": tenant.slug, "key": key}
    shown = io.StringIO()
    call_command("create_operator", username=OPERATOR, stdout=shown, stderr=sys.stderr)
    if password := shown.getvalue().strip():
        made |= {"operator": OPERATOR, "password": password}
    return made


if __name__ == "__main__":
    main()
