"""manage.py replay_dead_letters [--clear metadata]: what the ledger writer could not read."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenants.shards import blocking_redis
from usage.dead_letters import CLEARABLE, replay


class Command(BaseCommand):
    help = (
        "Write ledger entries that were put aside as unreadable. Safe to repeat, beside a running writer too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--clear",
            action="append",
            default=[],
            choices=CLEARABLE,
            help="leave this field empty where an entry can't be written with it; may be repeated",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        num_left = 0
        for stream, entry_id, request_id, problem in replay(blocking_redis(), options["clear"]):
            num_left += bool(problem)
            self.stdout.write(f"{stream} {entry_id} {request_id}: {problem or 'written'}")
        if num_left:
            raise CommandError(f"{num_left} entries still can't be written")
