"""One worker at a time validates or finalizes a batch; one that was given up finds its fence overtaken."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from bulk.models import Batch, BatchStatus


class HoldLost(Exception):
    """Somebody else has it now, or the batch went another way: stop, and change nothing."""


@dataclass(frozen=True, slots=True)
class Hold:
    batch_pk: int
    fence: int
    status: BatchStatus
    """While the batch has this one."""

    def renew(self) -> None:
        """In the transaction of what is written under it. Raises HoldLost."""
        self.change(held_until=lease_end())

    def change(self, **fields: object) -> None:
        """Raises HoldLost."""
        held = Batch.objects.filter(pk=self.batch_pk, held_fence=self.fence, status=self.status)
        if not held.update(**fields):
            raise HoldLost

    def give_up(self) -> None:
        """Whatever the batch's status is now: whoever goes on with it need not wait until the lease ends."""
        Batch.objects.filter(pk=self.batch_pk, held_fence=self.fence).update(held_until=None)


def take_hold(batch_pk: int, status: BatchStatus) -> Hold | None:
    """None: it is in another state, or somebody is at it."""
    is_free = Q(held_until=None) | Q(held_until__lt=timezone.now())
    with transaction.atomic():
        fence = draw_fence(batch_pk)
        free = Batch.objects.filter(is_free, pk=batch_pk, status=status)
        taken = free.update(held_fence=fence, held_until=lease_end())
    return Hold(batch_pk, fence, status) if taken else None


def draw_fence(batch_pk: int) -> int:
    """Inside a transaction."""
    Batch.objects.filter(pk=batch_pk).update(fence=F("fence") + 1)
    return Batch.objects.values_list("fence", flat=True).get(pk=batch_pk)


def lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=settings.OCTAVO_BULK_LEASE_SECONDS)
