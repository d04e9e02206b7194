"""An API key: its public id is the name it goes by, the secret itself is nowhere stored."""

from django.db import models
from django.utils import timezone

from api_keys.networks import validate_networks
from api_keys.scopes import default_scopes, validate_scopes
from tenants.models import ModelAccess, Tenant


class ApiKey(ModelAccess):
    public_id = models.CharField(max_length=32, unique=True, editable=False)
    digest = models.BinaryField(max_length=32, editable=False, help_text="SHA-256 of the secret.")
    previous_digest = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="Of the secret before the last rotation."
    )
    previous_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="How long that one is good for."
    )
    name = models.CharField(max_length=100)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="api_keys")
    scopes = models.JSONField(
        default=default_scopes, validators=[validate_scopes], help_text="What the key may be used for."
    )
    allowed_networks = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_networks],
        help_text='Where it may be used from, e.g. ["10.0.0.0/8"]; empty: anywhere.',
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "API key"
        default_permissions = ("add", "change", "view")

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
