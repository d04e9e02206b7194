"""Tenants, and the policy that each is, as the management API shows and takes them."""

from rest_framework import serializers

from management.fields import FiniteFloatField, ModelNamesField
from tenants.models import Feature, Tenant


class TenantSerializer(serializers.ModelSerializer):
    slug = serializers.SlugField(required=False, max_length=64, help_text="From the name unless given.")
    weight = FiniteFloatField(required=False, min_value=0.01)
    queue_timeout_seconds = FiniteFloatField(required=False, allow_null=True, min_value=0.1)
    allowed_models = ModelNamesField(required=False)
    model_aliases = serializers.DictField(child=serializers.CharField(max_length=200), required=False)
    features = serializers.ListField(
        child=serializers.ChoiceField(Feature.choices),
        max_length=len(Feature),
        allow_null=True,
        required=False,
        help_text="What requests may use; null: everything.",
    )

    class Meta:
        model = Tenant
        fields = (
            "id",
            "name",
            "slug",
            "status",
            "service_class",
            "weight",
            "max_output_tokens",
            "default_output_tokens",
            "max_context_tokens",
            "allowed_models",
            "model_aliases",
            "features",
            "queue_timeout_seconds",
            "time_zone",
            "policy_epoch",
            "created_at",
        )
        read_only_fields = ("status", "policy_epoch")
