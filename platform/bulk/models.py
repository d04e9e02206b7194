"""Files and batches. A batch's lines are rows, each claimed by one worker at a time and answered once.

    Batch --- Chunk --- Line          a chunk is one task: at most 100 lines
      |                  claimed:  fence, lease_until
      +-- input, output and error File

A fence is drawn from its batch at every claim and only rises, so whoever was given up can write no more.
"""

from django.db import models
from django.utils import timezone

from api_keys.models import ApiKey
from bulk.public_ids import batch_id, file_id
from tenants.models import Tenant


class Purpose(models.TextChoices):
    BATCH = "batch", "batch"
    BATCH_OUTPUT = "batch_output", "batch output"


class File(models.Model):
    """`storage_name` is empty once the content is gone; the row stays for the batches that name it."""

    public_id = models.CharField(max_length=40, unique=True, default=file_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="files")
    key_id = models.CharField(max_length=32, help_text="Of the API key that made it.")
    filename = models.CharField(max_length=255)
    purpose = models.CharField(max_length=16, choices=Purpose.choices)
    num_bytes = models.PositiveBigIntegerField(default=0)
    storage_name = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("change", "view")
        indexes = (models.Index(fields=["tenant", "-id"], name="file_of_tenant"),)

    def __str__(self) -> str:
        return self.public_id


class BatchStatus(models.TextChoices):
    VALIDATING = "validating", "validating"
    FAILED = "failed", "failed"
    IN_PROGRESS = "in_progress", "in progress"
    FINALIZING = "finalizing", "finalizing"
    COMPLETED = "completed", "completed"
    EXPIRED = "expired", "expired"
    CANCELLING = "cancelling", "cancelling"
    CANCELLED = "cancelled", "cancelled"


OPEN = (BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS, BatchStatus.FINALIZING, BatchStatus.CANCELLING)


class Batch(models.Model):
    public_id = models.CharField(max_length=40, unique=True, default=batch_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="batches")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="batches")
    address = models.CharField(max_length=64, blank=True, help_text="Where it was asked for from.")
    endpoint = models.CharField(max_length=64)
    completion_window = models.CharField(max_length=8)
    metadata: "models.JSONField[dict[str, str], dict[str, str]]" = models.JSONField(default=dict)
    input_file = models.ForeignKey(File, on_delete=models.PROTECT, related_name="+")
    output_file = models.ForeignKey(File, on_delete=models.PROTECT, related_name="+", null=True)
    error_file = models.ForeignKey(File, on_delete=models.PROTECT, related_name="+", null=True)
    output_expires_after_s = models.PositiveIntegerField(null=True)

    status = models.CharField(
        max_length=16, choices=BatchStatus.choices, default=BatchStatus.VALIDATING, db_index=True
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    in_progress_at = models.DateTimeField(null=True)
    finalizing_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    expired_at = models.DateTimeField(null=True)
    cancelling_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    errors: "models.JSONField[list[dict[str, object]], list[dict[str, object]]]" = models.JSONField(
        default=list, help_text="What is wrong with its input."
    )

    model = models.CharField(max_length=200, blank=True, help_text="Of the first line that was answered.")
    num_total = models.PositiveIntegerField(default=0)
    num_completed = models.PositiveIntegerField(default=0)
    num_failed = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)

    fence = models.PositiveBigIntegerField(default=0, help_text="The last one drawn.")
    held_fence = models.PositiveBigIntegerField(default=0, help_text="Of who validates or finalizes it.")
    held_until = models.DateTimeField(null=True)
    charged_at = models.DateTimeField(null=True, help_text="Every answer was found in the ledger.")

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "batches"
        default_permissions = ("change", "view")
        indexes = (models.Index(fields=["tenant", "-id"], name="batch_of_tenant"),)

    def __str__(self) -> str:
        return self.public_id

    @property
    def is_open(self) -> bool:
        return self.status in OPEN


class Chunk(models.Model):
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    is_done = models.BooleanField(default=False)
    taken_until = models.DateTimeField(null=True, help_text="A task for it is queued or runs.")
    not_before = models.DateTimeField(null=True, help_text="Its lines wait for room until then.")

    class Meta:
        default_permissions = ()
        constraints = (models.UniqueConstraint(fields=["batch", "number"], name="chunk_once"),)
        indexes = (models.Index(fields=["batch", "is_done", "number"], name="chunk_open"),)

    def __str__(self) -> str:
        return f"{self.batch_id}/{self.number}"


class LineState(models.IntegerChoices):
    WAITING = 0, "waiting"
    CLAIMED = 1, "claimed"
    ANSWERED = 2, "answered"
    FAILED = 3, "failed"


UNFINISHED = (LineState.WAITING, LineState.CLAIMED)


class Line(models.Model):
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="lines")
    chunk = models.ForeignKey(Chunk, on_delete=models.CASCADE, related_name="lines")
    number = models.PositiveIntegerField(help_text="In the input file, from 1.")
    custom_id = models.CharField(max_length=512)
    offset = models.PositiveBigIntegerField(help_text="Of its first byte in the input file.")
    length = models.PositiveIntegerField(help_text="In bytes.")
    state = models.PositiveSmallIntegerField(choices=LineState.choices, default=LineState.WAITING)
    fence = models.PositiveBigIntegerField(default=0, help_text="Of its last claim.")
    lease_until = models.DateTimeField(null=True)
    num_faults = models.PositiveSmallIntegerField(default=0, help_text="Attempts that broke off.")
    result = models.TextField(blank=True, help_text="One line of the output or error file.")
    charge = models.TextField(
        blank=True, help_text="Its row of the ledger, as JSON, until it is found there."
    )

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=["batch", "custom_id"], name="line_once"),
            models.UniqueConstraint(fields=["batch", "number"], name="line_number_once"),
        )
        indexes = (models.Index(fields=["chunk", "state"], name="line_of_chunk"),)

    def __str__(self) -> str:
        return f"{self.batch_id}:{self.number}"
