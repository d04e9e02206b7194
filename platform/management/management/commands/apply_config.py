"""manage.py apply_config FILE [--dry-run]"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from management.configuration.yaml_source import ConfigurationError, Source
from management.services import apply_configuration

MAX_BYTES = 16 * 1024 * 1024


class Command(BaseCommand):
    help = "Make tenants, limits and policies what a YAML file says; prints the differences. - is stdin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--dry-run", action="store_true", help="print the differences, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            source = Source(_read(options["file"]))
            lines = apply_configuration(source, dry_run=options["dry_run"], actor="command line")
        except ConfigurationError as error:
            raise CommandError(f"{options['file']}: {error}; nothing was changed") from None
        for line in lines:
            self.stdout.write(line)
        if not lines:
            self.stdout.write("no differences")
        elif options["dry_run"]:
            self.stdout.write(f"{len(lines)} differences; dry run, nothing was changed")


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read(MAX_BYTES) if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{name}: not UTF-8") from None
