"""On a first start: the demo tenant, its API key and an operator's login.

    python -m operations.first_run

Prints one JSON object for the supervisor, through a pipe: the secrets are in it this one time.
It runs last, when everything else is ready, so that nothing is made that would not be shown.
"""

import io
import json
import sys

import django

DEMO_TENANT = "demo"
OPERATOR = "operator"
ACTOR = "first start"


def main() -> None:
    django.setup()
    json.dump(make_demo(), sys.stdout)


def make_demo() -> dict[str, str]:
    """Tenant, key, operator and password; without the last two where an operator exists. All or nothing."""
    from django.core.management import call_command
    from django.db import transaction

    from api_keys.services import create_key
    from tenants.services import create_tenant

    with transaction.atomic():
        tenant = create_tenant(DEMO_TENANT, actor=ACTOR)
        _, key = create_key(tenant, "first", scopes=["inference", "batch"], actor=ACTOR)
        shown = io.StringIO()
        call_command("create_operator", username=OPERATOR, stdout=shown, stderr=sys.stderr)
    made = {"tenant": tenant.slug, "key": key}
    if password := shown.getvalue().strip():
        made |= {"operator": OPERATOR, "password": password}
    return made


if __name__ == "__main__":
    main()
