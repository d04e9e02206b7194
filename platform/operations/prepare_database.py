"""Brings the database up to date.

    python -m operations.prepare_database

Prints one JSON object: whether this is a first start, that is, whether there is no tenant yet.
"""

import json
import sys

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    from tenants.models import Tenant

    call_command("migrate", verbosity=0, interactive=False, stdout=sys.stderr)
    json.dump({"is_new": not Tenant.objects.exists()}, sys.stdout)


if __name__ == "__main__":
    main()
