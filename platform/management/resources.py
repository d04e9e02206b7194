"""What the views share: the caller, the tenant asked for, and query parameters that are all known."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.viewsets import GenericViewSet

from management.caller import Caller, caller_of
from management.errors import Gone
from tenants.models import Tenant


class Query(serializers.Serializer):
    """Query parameters. One that nobody knows is an error: a typo must not widen what is asked for."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = set(data) - set(self.fields) - {"cursor", "page_size"}
        if unknown:
            raise serializers.ValidationError({min(unknown): "Unknown query parameter."})
        return super().to_internal_value(data)


class Resource(GenericViewSet):
    required: ClassVar[dict[str, str]] = {}
    """Action -> the permission that it needs."""
    query_class: type[Query] = Query

    @property
    def caller(self) -> Caller:
        return caller_of(self.request.user)

    @property
    def actor(self) -> str:
        return self.caller.actor

    def query(self) -> dict[str, Any]:
        """The checked query parameters that were given."""
        query = self.query_class(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return query.validated_data

    def body(self) -> dict[str, Any]:
        """The checked fields that were given."""
        is_partial = self.request.method == "PATCH"
        serializer = self.get_serializer(data=self.request.data, partial=is_partial)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def tenant(self, tenant_id: int | None) -> Tenant:
        """The tenant named, or a key's own where none is. Another's is not there."""
        chosen = self.caller.tenant_id if tenant_id is None else tenant_id
        if chosen is None:
            raise serializers.ValidationError({"tenant": "This field is required."})
        found = Tenant.objects.filter(pk=chosen).first() if self.caller.sees(chosen) else None
        if found is None:
            raise Gone()
        return found

    def chosen_tenant_id(self, query: dict[str, Any]) -> int | None:
        """Whose rows to show; None: everybody's."""
        tenant_id = query.get("tenant", self.caller.tenant_id)
        return None if tenant_id is None else self.tenant(tenant_id).pk
