"""Fields that JSON alone does not keep within bounds."""

import math
from typing import Any

from rest_framework import serializers

MAX_ID = 2**63 - 1


class FiniteFloatField(serializers.FloatField):
    """1e999 is valid JSON and infinite."""

    def to_internal_value(self, data: Any) -> float:
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
