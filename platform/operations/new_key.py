"""`make key`: one more API key, with the environment of this home. Options: those of manage.py create_key.

PYTHONPATH=.:platform python -m operations.new_key [TENANT] [--name NAME]
"""

import os
import sys

from operations.first_run import DEMO_TENANT
from operations.home import ROOT, home_from, process_environment


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        arguments = [DEMO_TENANT, *arguments]
    environment = process_environment(home_from(os.environ), os.environ)
    command = [sys.executable, str(ROOT / "manage.py"), "create_key", *arguments]
    os.execve(sys.executable, command, environment)  # noqa: S606


if __name__ == "__main__":
    main()
