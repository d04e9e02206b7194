"""Keys of a running stack, made and revoked as an operator would."""

import subprocess
import sys

from octavo_stack import ROOT, Stack

CREATE = """
import django, sys
django.setup()
from api_keys.services import create_key
from tenants.models import Tenant
print(create_key(Tenant.objects.get(slug=sys.argv[1]), "to be revoked")[1])
"""
REVOKE = """
import django, sys, time
django.setup()
from api_keys.models import ApiKey
from api_keys.services import revoke_key
revoke_key(ApiKey.objects.get(public_id=sys.argv[1]))
print(time.monotonic())
"""


def create_key(stack: Stack, tenant: str) -> str:
    return _run(stack, CREATE, tenant)


def revoke(stack: Stack, key: str) -> float:
    """Answers when it was revoked, by the clock of time.monotonic()."""
    return float(_run(stack, REVOKE, key.split("_")[1]))


def _run(stack: Stack, program: str, argument: str) -> str:
    command = [sys.executable, "-c", program, argument]
    done = subprocess.run(
        command, cwd=ROOT, env=stack.environment, check=True, timeout=120, stdout=subprocess.PIPE
    )
    return done.stdout.decode().splitlines()[-1]
