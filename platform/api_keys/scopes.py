"""What a key may be used for."""

from django.core.exceptions import ValidationError
from django.db import models


class Scope(models.TextChoices):
    INFERENCE = "inference", "inference"
    BATCH = "batch", "batch"
    MANAGEMENT = "management", "management"


def default_scopes() -> list[str]:
    return [Scope.INFERENCE.value]


def validate_scopes(value: object) -> None:
    is_list = isinstance(value, list) and all(isinstance(scope, str) for scope in value)
    if not is_list or not value or len(set(value)) != len(value) or not set(value) <= set(Scope.values):  # type: ignore[call-overload, arg-type]
        raise ValidationError(f"Must be a list of different scopes, of {', '.join(Scope.values)}.")
