"""Usage as the management API shows it, and how it is asked for."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from management.fields import IdField, ReplicaField
from management.resources import Query
from management.selectors import SUMS
from usage.models import DailyUsage, Ending, HourlyUsage, LedgerEntry

DEFAULT_RANGE = timedelta(days=30)


class UsageQuery(Query):
    tenant = IdField(required=False)
    key = serializers.CharField(required=False, max_length=32)
    model = serializers.CharField(required=False, max_length=200)
    ending = serializers.ChoiceField(Ending.choices, required=False)
    since = serializers.DateTimeField(
        required=False, help_text="Admitted then or later; default: 30 days before `until`."
    )
    until = serializers.DateTimeField(required=False, help_text="Admitted before; default: now.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.setdefault("until", timezone.now())
        try:
            attrs.setdefault("since", until - DEFAULT_RANGE)
        except OverflowError:
            raise serializers.ValidationError({"until": "Too early."}) from None
        return attrs


class LedgerEntrySerializer(serializers.ModelSerializer):
    tenant = IdField(source="tenant_id")
    key = serializers.CharField(source="key_id")
    metadata = serializers.DictField()
    replica = ReplicaField()

    class Meta:
        model = LedgerEntry
        fields = (
            "request_id",
            "tenant",
            "tenant_name",
            "key",
            "key_name",
            "model",
            "endpoint",
            "prompt_tokens",
            "cached_tokens",
            "output_tokens",
            "overrun_tokens",
            "admitted_at",
            "first_token_at",
            "finished_at",
            "queue_ms",
            "ending",
            "code",
            "finish_reason",
            "replica",
            "user",
            "metadata",
            "source",
        )


class HourSerializer(serializers.ModelSerializer):
    tenant = IdField(source="tenant_id")
    key = serializers.CharField(source="key_id")

    class Meta:
        model = HourlyUsage
        fields = ("hour", "tenant", "key", "model", "ending", *SUMS)


class DaySerializer(HourSerializer):
    class Meta:
        model = DailyUsage
        fields = ("day", "tenant", "key", "model", "ending", *SUMS)


class TotalsSerializer(serializers.Serializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    num_requests = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    overrun_tokens = serializers.IntegerField()
