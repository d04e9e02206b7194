"""manage.py create_operator [--username NAME] [--new-password]"""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Create an operator of the console. Prints the password, which can't be shown again, to stdout."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--username", default="operator")
        parser.add_argument("--new-password", action="store_true", help="give one that exists a new password")

    def handle(self, *args: Any, **options: Any) -> None:
        operator = User.objects.filter(username=options["username"]).first()
        if operator is not None and not options["new_password"]:
            self.stderr.write(f"operator {operator.username} exists already; --new-password gives a new one")
            return
        password = secrets.token_urlsafe(15)
        if operator is None:
            User.objects.create_superuser(options["username"], password=password)
        else:
            operator.set_password(password)
            operator.save(update_fields=["password"])
        self.stdout.write(password)
