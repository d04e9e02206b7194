"""manage.py batch run | submit | watch | fetch | cancel: the command-line client of this installation."""

import argparse
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from bulk.client.command import act, add_arguments
from bulk.client.service import ServiceError


class Command(BaseCommand):
    help = "Run a file of requests, watch it, fetch what came out. octavo-batch does the same from anywhere."

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)
        local = f"http://{settings.OCTAVO_HOST}:{settings.OCTAVO_PORT}"
        parser.set_defaults(url=os.environ.get("OCTAVO_URL") or local)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            status = act(argparse.Namespace(**options), sys.stderr)
        except (ServiceError, OSError) as error:
            self.stderr.write(str(error))
            status = 1
        if status:
            sys.exit(status)
