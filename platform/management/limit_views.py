"""/api/v1/limits/"""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api_keys.models import ApiKey
from management.errors import Gone
from management.fields import IdField
from management.resources import Query, Resource
from quotas.limits import MAX_VALUE
from quotas.models import Limit
from quotas.services import clear_limit, set_limit
from tenants.models import Tenant


class LimitSerializer(serializers.ModelSerializer):
    tenant = IdField(source="tenant_id")
    key = serializers.CharField(
        source="key.public_id", max_length=32, allow_null=True, default=None, help_text="Of this key alone."
    )
    model = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="Of this model alone."
    )
    value = serializers.IntegerField(min_value=1, max_value=MAX_VALUE)
    burst = serializers.IntegerField(
        min_value=1,
        max_value=MAX_VALUE,
        allow_null=True,
        default=None,
        help_text="Of a rate: what may come at once.",
    )

    class Meta:
        model = Limit
        fields = ("id", "tenant", "scope", "key", "model", "kind", "value", "burst")
        read_only_fields = ("scope",)
        validators: tuple[Any, ...] = ()  # what exists is changed, not refused


class LimitQuery(Query):
    tenant = IdField(required=False)


class Limits(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    queryset = Limit.objects.all()
    serializer_class = LimitSerializer
    query_class = LimitQuery
    lookup_value_regex = "[0-9]{1,18}"
    required: ClassVar = {
        "list": "quotas.view_limit",
        "retrieve": "quotas.view_limit",
        "create": "quotas.add_limit",
        "destroy": "quotas.delete_limit",
    }

    def get_queryset(self) -> QuerySet[Limit]:
        tenant_id = self.chosen_tenant_id(self.query())
        limits = Limit.objects.select_related("key", "tenant")
        return limits if tenant_id is None else limits.filter(tenant_id=tenant_id)

    @extend_schema(parameters=[LimitQuery])
    def list(self, request: Request) -> Response:
        return super().list(request)

    def create(self, request: Request) -> Response:
        """Sets the limit: of the tenant, or of the key or the model named. One that exists is changed."""
        fields = self.body()
        tenant = self.tenant(fields["tenant_id"])
        limit = set_limit(
            tenant,
            fields["kind"],
            fields["value"],
            key=_key_of(tenant, fields["key"]["public_id"]),
            model=fields["model"],
            burst=fields["burst"],
            actor=self.actor,
        )
        return Response(self.get_serializer(limit).data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Unlimited from the very next request on."""
        clear_limit(self.get_object(), actor=self.actor)
        return Response(status=204)


def _key_of(tenant: Tenant, public_id: str | None) -> ApiKey | None:
    if public_id is None:
        return None
    key = ApiKey.objects.filter(tenant=tenant, public_id=public_id).first()
    if key is None:
        raise Gone()
    return key
