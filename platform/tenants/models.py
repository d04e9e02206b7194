"""A tenant: who pays, with what share and within what limits. Empty limits mean unlimited."""

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


def validate_model_names(value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValidationError("Must be a list of model names.")


class Limits(models.Model):
    """What a tenant and a key may both limit."""

    max_concurrent = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Requests in flight; empty: unlimited.",
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Empty: unlimited."
    )
    allowed_models = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_model_names],
        help_text='A list of model names, e.g. ["smollm2"]; empty: every model.',
    )

    class Meta:
        abstract = True


class Tenant(Limits):
    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=64, unique=True)
    status = models.CharField(max_length=16, choices=TenantStatus.choices, default=TenantStatus.ACTIVE)
    service_class = models.CharField(
        max_length=16, choices=ServiceClass.choices, default=ServiceClass.STANDARD
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
    policy_epoch = models.PositiveBigIntegerField(
        default=1, editable=False, help_text="Rises with every change of this tenant or of one of its keys."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        default_permissions = ("add", "change", "view")

    def __str__(self) -> str:
        return self.name
