"""manage.py ledger_writer: writes the ledger, sweeps lost reservations, reconciles policy epochs."""

import signal
import threading
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from admission.chores import Chore, run_chores
from admission.maintenance import publish_maintenance
from conversations.services import delete_expired
from quotas.sweeper import Sweeper
from tenants.policy_epochs import reconcile_epochs
from tenants.shards import blocking_redis
from usage.ledger_writer import BATCH_PER_STREAM, LedgerWriter
from usage.services import delete_rows_before

log = structlog.get_logger(__name__)

BLOCK_MS = 200
GATHER_S = 0.5
"""Rows come one by one, and a transaction costs as much as some twenty of them."""
SWEEP_INTERVAL_S = 2.0
RECONCILE_INTERVAL_S = 5.0
DELETE_INTERVAL_S = 10.0


def _delete_old_rows() -> int:
    """One batch at a time."""
    return delete_rows_before(timezone.now() - timedelta(days=settings.OCTAVO_LEDGER_DAYS))


def _write_what_is_there(writer: LedgerWriter) -> None:
    """Until so few are left that they may gather."""
    num_written = writer.write_some(BLOCK_MS)
    while num_written >= BATCH_PER_STREAM:
        num_written = writer.write_some(1)


class Command(BaseCommand):
    help = "Write the ledger until SIGTERM. One process is enough; a second one does no harm."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="write what is there, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        client = blocking_redis()
        writer = LedgerWriter(client)
        if options["once"]:
            while writer.write_some(1):
                pass
            return
        lease_s = settings.OCTAVO_LEASE_SECONDS
        sweeper = Sweeper(client, grace_s=lease_s / 2, quiet_s=lease_s)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        log.info("ledger_writer_started")
        run_chores(
            [
                Chore("write ledger", GATHER_S, lambda: _write_what_is_there(writer)),
                Chore("sweep reservations", SWEEP_INTERVAL_S, sweeper.sweep),
                Chore("reconcile policy epochs", RECONCILE_INTERVAL_S, reconcile_epochs),
                Chore("reconcile maintenance", RECONCILE_INTERVAL_S, publish_maintenance),
                Chore("delete old rows", DELETE_INTERVAL_S, _delete_old_rows),
                Chore("delete old responses", DELETE_INTERVAL_S, lambda: delete_expired(timezone.now())),
            ],
            stop,
        )
        log.info("ledger_writer_stopped")
