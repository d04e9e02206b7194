"""The ledger: one row per admitted request, whatever its ending, never changed afterwards."""

from typing import Any

from django.db import models


class Ending(models.TextChoices):
    FINISHED = "finished", "finished"
    ABORTED = "aborted", "aborted"
    FAILED = "failed", "failed"


class Source(models.TextChoices):
    AUTHORITATIVE = "authoritative", "authoritative"
    ESTIMATED = "estimated", "estimated"


class LedgerEntry(models.Model):
    """Tenant and key are snapshots, not references: the row outlives both."""

    request_id = models.CharField(max_length=128, unique=True)
    tenant_id = models.BigIntegerField()
    tenant_name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=32)
    key_name = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    endpoint = models.CharField(max_length=100)

    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0, help_text="Up to the stop match, as received.")
    overrun_tokens = models.PositiveIntegerField(
        default=0, help_text="Generated after the stop match; not billed."
    )

    admitted_at = models.DateTimeField()
    first_token_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    queue_ms = models.FloatField(null=True)

    ending = models.CharField(max_length=16, choices=Ending.choices)
    code = models.CharField(max_length=64, blank=True)
    finish_reason = models.CharField(max_length=32, blank=True)
    replica = models.CharField(max_length=128, blank=True)
    user = models.CharField(max_length=512, blank=True)
    metadata: "models.JSONField[dict[str, Any], dict[str, Any]]" = models.JSONField(default=dict)
    source = models.CharField(max_length=16, choices=Source.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "ledger entries"
        default_permissions = ("view",)
        indexes = (
            models.Index(fields=["tenant_id", "finished_at"], name="ledger_tenant_time"),
            models.Index(fields=["key_id", "finished_at"], name="ledger_key_time"),
            models.Index(fields=["tenant_id", "admitted_at"], name="ledger_tenant_admitted"),
            models.Index(fields=["admitted_at"], name="ledger_admitted"),
            models.Index(
                fields=["ending", "admitted_at"],
                condition=~models.Q(ending=Ending.FINISHED),
                name="ledger_unfinished",  # the few that someone looks for
            ),
        )

    def __str__(self) -> str:
        return self.request_id


class Rollup(models.Model):
    """Sums over ledger rows by the time of admission; kept when the rows themselves are gone."""

    tenant_id = models.BigIntegerField()
    key_id = models.CharField(max_length=32)
    model = models.CharField(max_length=200)
    ending = models.CharField(max_length=16, choices=Ending.choices)
    num_requests = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    overrun_tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True
        default_permissions = ("view",)


class HourlyUsage(Rollup):
    hour = models.DateTimeField(help_text="Its first moment, UTC.")

    class Meta(Rollup.Meta):
        ordering = ("-hour", "id")
        verbose_name_plural = "hourly usage"
        constraints = (
            models.UniqueConstraint(
                fields=["tenant_id", "hour", "key_id", "model", "ending"], name="usage_once_an_hour"
            ),
        )
        indexes = (
            models.Index(fields=["-hour", "id"], name="hourly_newest"),
            models.Index(fields=["key_id", "-hour"], name="hourly_of_key"),
        )

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.hour:%Y-%m-%d %H:00}"


class DailyUsage(Rollup):
    day = models.DateField(help_text="UTC.")

    class Meta(Rollup.Meta):
        ordering = ("-day", "id")
        verbose_name_plural = "daily usage"
        constraints = (
            models.UniqueConstraint(
                fields=["tenant_id", "day", "key_id", "model", "ending"], name="usage_once_a_day"
            ),
        )
        indexes = (
            models.Index(fields=["-day", "id"], name="daily_newest"),
            models.Index(fields=["key_id", "-day"], name="daily_of_key"),
        )

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day:%Y-%m-%d}"
