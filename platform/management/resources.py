"""What the views share: the caller, the tenant asked for, and query parameters that are all known."""

from collections.abc import Mapping
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

    def body(self, present: Any = None) -> dict[str, Any]:
        """The checked fields that were given; `present` is what a PATCH changes."""
        data = self.request.data
        serializer = self.get_serializer(present, data=data, partial=present is not None)
        serializer.is_valid(raise_exception=True)
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("The body must be an object.")
        _refuse_others(serializer, data, {} if present is None else self.get_serializer(present).data)
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


def _refuse_others(serializer: Any, data: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """A field that nobody would heed is an error, unless it says what is so already."""
    for name in data:
        field = serializer.fields.get(name)
        if field is None:
            raise serializers.ValidationError({name: "Unknown field."})
        if field.read_only and (name not in shown or shown[name] != data[name]):
            raise serializers.ValidationError({name: "This field can't be set here."})
