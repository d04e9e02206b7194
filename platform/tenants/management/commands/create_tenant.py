"""manage.py create_tenant NAME [--weight N] [--time-zone ZONE] ...; its limits: manage.py set_limit."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from tenants.models import ServiceClass
from tenants.selectors import find_tenant
from tenants.services import create_tenant

OPTIONS = ("slug", "service_class", "weight", "max_output_tokens", "time_zone")


class Command(BaseCommand):
    help = "Create a tenant; one that exists is left as it is. Prints its slug."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--slug")
        parser.add_argument("--service-class", choices=ServiceClass.values)
        parser.add_argument("--weight", type=float)
        parser.add_argument("--max-output-tokens", type=int)
        parser.add_argument("--time-zone", help="where its days and months begin, e.g. Europe/Berlin")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = find_tenant(options["name"])
        if tenant is None:
            fields = {name: options[name] for name in OPTIONS if options[name] is not None}
            try:
                tenant = create_tenant(options["name"], actor="command line", **fields)
            except ValidationError as error:
                raise CommandError("; ".join(error.messages)) from error
        else:
            self.stderr.write(f"tenant {tenant.slug} exists already; nothing was changed")
        self.stdout.write(tenant.slug)
