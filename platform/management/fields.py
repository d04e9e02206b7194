"""Fields that JSON alone does not keep within bounds."""

import math
from typing import Any

from django.utils.crypto import salted_hmac
from rest_framework import serializers

from management.caller import caller_of

MAX_ID = 2**63 - 1


class FiniteFloatField(serializers.FloatField):
    """1e999 is valid JSON and infinite; true is no number."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool):
            self.fail("invalid")
        value: float = super().to_internal_value(data)
        if not math.isfinite(value):
            self.fail("invalid")
        return value


class IdField(serializers.IntegerField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 1, "max_value": MAX_ID, **kwargs})


class ModelNamesField(serializers.ListField):
    """null: every model."""

    def __init__(self, **kwargs: Any) -> None:
        child = serializers.CharField(max_length=200)
        super().__init__(**{"child": child, "max_length": 1000, "allow_null": True, **kwargs})


class ReplicaField(serializers.CharField):
    """An engine's name says on which machine it is, and where: to a tenant only which of them it is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"read_only": True, **kwargs})

    def to_representation(self, value: str) -> str:
        if not value or caller_of(self.context["request"].user).tenant_id is None:
            return value
        return "engine-" + salted_hmac("management.replica", value).hexdigest()[:12]
