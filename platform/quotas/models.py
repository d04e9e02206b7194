"""A limit of a tenant, of one of its keys or of one model: the one place where limits are kept."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from quotas.limits import MAX_VALUE, OF_TENANTS, RATES, LimitKind, LimitRule, LimitScope
from tenants.models import Tenant

_AMOUNT = [MinValueValidator(1), MaxValueValidator(MAX_VALUE)]


class Limit(models.Model):
    """What has no limit is unlimited."""

    scope = models.CharField(max_length=8, choices=LimitScope.choices, default=LimitScope.TENANT)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="limits")
    key = models.ForeignKey(
        "api_keys.ApiKey",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="limits",
        help_text="With scope key.",
    )
    model = models.CharField(max_length=200, blank=True, help_text="With scope model: its name.")
    kind = models.CharField(max_length=24, choices=LimitKind.choices)
    value = models.PositiveBigIntegerField(validators=_AMOUNT)
    burst = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=_AMOUNT,
        help_text="Of a rate: what may come at once; empty: OCTAVO_RATE_BURST_FRACTION of the value.",
    )

    class Meta:
        ordering = ("tenant", "scope", "kind", "id")
        default_permissions = ("add", "change", "delete", "view")
        constraints = (
            models.UniqueConstraint(
                fields=["tenant", "kind"], condition=models.Q(scope="tenant"), name="limit_once_a_tenant"
            ),
            models.UniqueConstraint(
                fields=["key", "kind"], condition=models.Q(scope="key"), name="limit_once_a_key"
            ),
            models.UniqueConstraint(
                fields=["tenant", "model", "kind"],
                condition=models.Q(scope="model"),
                name="limit_once_a_model",
            ),
            models.CheckConstraint(
                condition=models.Q(scope="tenant", key=None, model="")
                | models.Q(scope="key", key__isnull=False, model="")
                | models.Q(scope="model", key=None) & ~models.Q(model=""),
                name="limit_scope_fits",
            ),
        )

    def __str__(self) -> str:
        return f"{self.scope} {self.kind} {self.value}"

    def clean(self) -> None:
        if self.key_id is not None and self.model:
            raise ValidationError({"model": "A limit is of a key or of a model, not of both."})
        if self.scope == LimitScope.KEY and self.key is not None and self.key.tenant_id != self.tenant_id:
            raise ValidationError({"key": "The key belongs to another tenant."})
        if self.burst is not None and self.kind not in RATES:
            raise ValidationError({"burst": "Only a rate has a burst."})
        if self.kind in OF_TENANTS and self.scope != LimitScope.TENANT:
            raise ValidationError({"kind": "Only a whole tenant has this limit."})

    @property
    def rule(self) -> LimitRule:
        scope, kind = LimitScope(self.scope), LimitKind(self.kind)
        return LimitRule(scope, kind, self.value, self.burst, self.model, self.pk)
