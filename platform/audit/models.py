"""Who changed what: a chain of records to which rows are only ever added.

A record's id is its place in the chain, without gaps; `hash` covers the whole record and the hash of the one
before it (audit/chain.py). Triggers refuse changes that come around this model (audit/guards.py).
"""

from typing import Any, NoReturn

from django.db import models

Values = dict[str, Any]


class AuditRecordQuerySet(models.QuerySet["AuditRecord"]):
    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("audit records are never changed")

    def delete(self) -> NoReturn:
        raise TypeError("audit records are never deleted")


class AuditRecord(models.Model):
    id = models.BigIntegerField(primary_key=True, help_text="Its place in the chain.")
    at = models.DateTimeField()
    actor = models.CharField(
        max_length=160, help_text="user:NAME, api_key:ID, command line, system or anonymous."
    )
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    tenant_id = models.BigIntegerField(null=True, help_text="Of the tenant that it concerns.")
    before: "models.JSONField[Values | None, Values | None]" = models.JSONField(null=True)
    after: "models.JSONField[Values | None, Values | None]" = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=64, blank=True, help_text="Where the request came from.")
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects = AuditRecordQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = (
            models.Index(fields=["subject", "id"], name="audit_subject"),
            models.Index(fields=["tenant_id", "id"], name="audit_tenant"),
            models.Index(fields=["actor", "id"], name="audit_actor"),
            models.Index(fields=["request_id"], name="audit_request"),
        )

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("audit records are never changed")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("audit records are never deleted")
