"""Batches as the management API shows them, and how they are asked for."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from bulk.batches.progress import lines_per_second, percent_done
from bulk.models import Batch, BatchStatus
from management.fields import IdField
from management.resources import Query


class BatchSerializer(serializers.ModelSerializer):
    id = serializers.CharField(source="public_id", read_only=True)
    key = serializers.CharField(source="api_key.public_id", read_only=True)
    input_file = serializers.CharField(source="input_file.public_id", read_only=True)
    output_file = serializers.CharField(source="output_file.public_id", read_only=True, default=None)
    error_file = serializers.CharField(source="error_file.public_id", read_only=True, default=None)
    percent_done = serializers.SerializerMethodField()
    lines_per_second = serializers.SerializerMethodField()
    errors = serializers.ListField(child=serializers.DictField(), read_only=True)
    metadata = serializers.DictField(read_only=True)

    class Meta:
        model = Batch
        fields: tuple[str, ...] = (
            *("id", "tenant", "key", "endpoint", "model", "status", "percent_done", "lines_per_second"),
            *("num_total", "num_completed", "num_failed", "prompt_tokens", "output_tokens"),
            *("input_file", "output_file", "error_file", "errors", "metadata"),
            *("created_at", "in_progress_at", "finalizing_at", "completed_at", "failed_at"),
            *("expired_at", "cancelling_at", "cancelled_at", "expires_at"),
        )
        read_only_fields = fields

    def get_percent_done(self, batch: Batch) -> float:
        return percent_done(batch)

    def get_lines_per_second(self, batch: Batch) -> float:
        return lines_per_second(batch, timezone.now())


class BatchQuery(Query):
    tenant = IdField(required=False)
    status = serializers.ChoiceField(BatchStatus.choices, required=False)


def filters_of(query: dict[str, Any], tenant_id: int | None) -> dict[str, Any]:
    given = {"tenant_id": tenant_id, "status": query.get("status")}
    return {name: value for name, value in given.items() if value is not None}
