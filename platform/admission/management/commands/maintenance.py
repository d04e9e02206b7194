"""manage.py maintenance begin --message TEXT | end"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from admission.maintenance import begin_maintenance, end_maintenance

ACTOR = "command line"
DEFAULT_MESSAGE = "This service is under maintenance; please try again later."


class Command(BaseCommand):
    help = "Refuse new requests, or let them in again. Running requests are not touched."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["begin", "end"])
        parser.add_argument("--message", default=DEFAULT_MESSAGE)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["what"] == "begin":
            begin_maintenance(options["message"], actor=ACTOR)
        else:
            end_maintenance(actor=ACTOR)
