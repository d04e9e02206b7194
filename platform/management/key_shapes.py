"""API keys as the management API shows and takes them."""

from typing import Any

from rest_framework import serializers

from api_keys.models import ApiKey
from api_keys.scopes import Scope
from management.fields import IdField, ModelNamesField
from management.resources import Query

MAX_GRACE_S = 30 * 86400


class KeySerializer(serializers.ModelSerializer):
    id = serializers.CharField(source="public_id", read_only=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices), min_length=1, max_length=len(Scope), required=False
    )
    allowed_models = ModelNamesField(required=False)
    allowed_networks = serializers.ListField(
        child=serializers.CharField(max_length=64),
        min_length=1,
        max_length=100,
        allow_null=True,
        required=False,
        help_text="Where it may be used from; null: anywhere.",
    )
    is_usable = serializers.BooleanField(read_only=True)
    last_used_at = serializers.DateTimeField(
        read_only=True, default=None, allow_null=True, help_text="When its newest request ended."
    )

    class Meta:
        model = ApiKey
        fields: tuple[str, ...] = (
            "id",
            "tenant",
            "name",
            "scopes",
            "allowed_models",
            "allowed_networks",
            "created_at",
            "expires_at",
            "revoked_at",
            "is_usable",
            "last_used_at",
        )
        read_only_fields: tuple[str, ...] = ("tenant", "revoked_at")


class NewKeySerializer(KeySerializer):
    tenant = IdField(required=False, help_text="A management key's own tenant unless given.")

    class Meta(KeySerializer.Meta):
        read_only_fields = ("revoked_at",)


class KeyWithSecretSerializer(KeySerializer):
    secret = serializers.CharField(read_only=True, help_text="The whole key; it can't be shown again.")

    class Meta(KeySerializer.Meta):
        fields = (*KeySerializer.Meta.fields, "secret")


class RotationSerializer(serializers.Serializer):
    grace_seconds = serializers.IntegerField(
        min_value=0, max_value=MAX_GRACE_S, default=0, help_text="How long the old key still works."
    )


class KeyQuery(Query):
    tenant = IdField(required=False)


def with_secret(key: ApiKey, plaintext: str) -> dict[str, Any]:
    shown: dict[str, Any] = KeySerializer(key).data
    return {**shown, "secret": plaintext}
