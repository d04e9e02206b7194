"""Who changed what: rows are only ever added."""

from typing import Any

from django.db import models


class AuditRecord(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=128)
    detail: "models.JSONField[dict[str, Any], dict[str, Any]]" = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = (models.Index(fields=["subject", "id"], name="audit_subject"),)

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("audit records are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("audit records are never deleted")
