"""manage.py export_usage requests|hours|days --since 2026-11-01 --until 2026-12-01 [--format json] ..."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenants.selectors import find_tenant
from usage.export import Format, What, columns_of, rows_to_export, write_export


class Command(BaseCommand):
    help = "Write usage to stdout, oldest first. Times are UTC unless they name their offset."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=list(What), help="single requests, or sums by hour or day")
        parser.add_argument("--since", type=_time, required=True, help="the first moment")
        parser.add_argument("--until", type=_time, required=True, help="the first moment after")
        parser.add_argument("--tenant", help="a tenant's slug or name; all unless given")
        parser.add_argument("--format", choices=list(Format), default=Format.CSV)

    def handle(self, *args: Any, **options: Any) -> None:
        what = What(options["what"])
        tenant = find_tenant(options["tenant"]) if options["tenant"] else None
        if options["tenant"] and tenant is None:
            raise CommandError(f"no tenant {options['tenant']!r}")
        rows = rows_to_export(
            what,
            since=options["since"],
            until=options["until"],
            tenant_id=None if tenant is None else tenant.pk,
        )
        count = write_export(rows, columns_of(what), Format(options["format"]), self.stdout)  # type: ignore[arg-type]
        self.stderr.write(f"{count} rows")


def _time(text: str) -> datetime:
    """Raises ValueError, which argparse turns into a message."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
