"""manage.py verify_audit [--head-file PATH]"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from audit.head_file import read_heads
from audit.models import AuditRecord
from audit.selectors import verify_chain


class Command(BaseCommand):
    help = (
        "Check the audit trail's hash chain and the heads kept outside the database. Names the first break."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--head-file", type=Path, default=Path(settings.OCTAVO_AUDIT_HEAD_FILE))

    def handle(self, *args: Any, **options: Any) -> None:
        heads = self._heads(options["head_file"])
        num_records, problem = verify_chain(heads)
        if problem is not None:
            raise CommandError(f"the audit trail is broken: {problem}")
        self.stdout.write(f"{num_records} audit records, unbroken; {len(heads)} heads agree")

    def _heads(self, path: Path) -> dict[int, str]:
        try:
            return read_heads(path)
        except FileNotFoundError:
            if not AuditRecord.objects.exists():
                return {}
            raise CommandError(f"{path} is missing: nothing vouches for the end of the chain") from None
        except (OSError, ValueError) as error:
            raise CommandError(f"{path} can't be used: {error}") from None
