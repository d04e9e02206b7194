"""manage.py create_key TENANT [--name NAME] [--expires-in-days N] [--scope inference --scope batch]"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from api_keys.scopes import Scope
from api_keys.services import create_key
from tenants.selectors import find_tenant


class Command(BaseCommand):
    help = "Create an API key for a tenant. Prints the key, which can't be shown again, to stdout."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="a tenant's slug or name")
        parser.add_argument("--name", default="default")
        parser.add_argument("--expires-in-days", type=int)
        parser.add_argument(
            "--scope", action="append", choices=Scope.values, help="what it is for; default: inference"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = find_tenant(options["tenant"])
        if tenant is None:
            raise CommandError(
                f"no tenant {options['tenant']!r}; create it with: manage.py create_tenant NAME"
            )
        days = options["expires_in_days"]
        expires_at = timezone.now() + timedelta(days=days) if days else None
        try:
            _, plaintext = create_key(
                tenant,
                options["name"],
                expires_at=expires_at,
                scopes=options["scope"],
                actor="command line",
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.stdout.write(plaintext)
