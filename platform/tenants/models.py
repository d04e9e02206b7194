"""A tenant: who pays, with what share and under which policy. How much it may use: quotas/models.py."""

from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models

from inference_engine.contract.requests import ServiceClass as ContractClass


class TenantStatus(models.TextChoices):
    ACTIVE = "active", "active"
    SUSPENDED = "suspended", "suspended"


class ServiceClass(models.TextChoices):
    INTERACTIVE = ContractClass.INTERACTIVE.value, "interactive"
    STANDARD = ContractClass.STANDARD.value, "standard"
    BULK = ContractClass.BULK.value, "bulk"


def _is_name(value: object) -> bool:
    """PostgreSQL's JSON holds neither a NUL nor half of a pair."""
    return (
        isinstance(value, str)
        and value != ""
        and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value)
    )


def validate_model_names(value: object) -> None:
    if not isinstance(value, list) or not all(map(_is_name, value)):
        raise ValidationError("Must be a list of model names.")


class Feature(models.TextChoices):
    """What a request may ask for beyond plain generation."""

    LOGPROBS = "logprobs", "log probabilities"
    N = "n", "several choices"
    TOOLS = "tools", "tools"
    STRUCTURED_OUTPUT = "structured_output", "structured output"
    BULK = "bulk", "batches"


def validate_features(value: object) -> None:
    if not isinstance(value, list) or not all(name in Feature.values for name in value):
        raise ValidationError(f"Must be a list of features: {', '.join(Feature.values)}.")


def validate_aliases(value: object) -> None:
    if not isinstance(value, dict) or not all(map(_is_name, (*value.keys(), *value.values()))):
        raise ValidationError("Must map names to model names.")


def validate_time_zone(value: str) -> None:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, KeyError) as error:
        raise ValidationError("Must be a time zone such as Europe/Berlin.") from error


class ModelAccess(models.Model):
    """What a tenant and a key may both restrict."""

    allowed_models = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_model_names],
        help_text='A list of model names, e.g. ["smollm2"]; empty: every model.',
    )

    class Meta:
        abstract = True


def _token_limit(help_text: str) -> "models.PositiveIntegerField[int | None, int | None]":
    return models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=help_text
    )


class Tenant(ModelAccess):
    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=64, unique=True)
    status = models.CharField(max_length=16, choices=TenantStatus.choices, default=TenantStatus.ACTIVE)
    service_class = models.CharField(
        max_length=16,
        choices=ServiceClass.choices,
        default=ServiceClass.STANDARD,
        help_text="The highest that its requests may ask for.",
    )
    weight = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0.01)],
        help_text="Share of the engines beside other tenants.",
    )
    max_output_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Of one request; empty: unlimited.",
    )
    default_output_tokens = _token_limit("Where a request names none; empty: OCTAVO_DEFAULT_OUTPUT_TOKENS.")
    max_context_tokens = _token_limit(
        "Prompt and output of one request together; empty: what the model takes."
    )
    model_aliases: "models.JSONField[dict[str, str], dict[str, str]]" = models.JSONField(
        default=dict,
        blank=True,
        validators=[validate_aliases],
        help_text='Other names for models, e.g. {"gpt-4o-mini": "smollm2"}.',
    )
    features = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_features],
        help_text='What requests may use, e.g. ["logprobs", "tools"]; empty: everything.',
    )
    queue_timeout_seconds = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.1)],
        help_text="Until the first token; empty: the installation's.",
    )
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[validate_time_zone],
        help_text="Where its days and months begin.",
    )
    policy_epoch = models.PositiveBigIntegerField(
        default=1, editable=False, help_text="Rises with every change of this tenant or of one of its keys."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        default_permissions = ("add", "change", "view")

    def __str__(self) -> str:
        return self.name
