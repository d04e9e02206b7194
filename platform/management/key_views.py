"""/api/v1/keys/"""

from datetime import timedelta
from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from api_keys.models import ApiKey
from api_keys.selectors import with_last_use
from api_keys.services import create_key, revoke_key, rotate_key, update_key
from management.key_shapes import (
    KeyQuery,
    KeySerializer,
    KeyWithSecretSerializer,
    NewKeySerializer,
    RotationSerializer,
    with_secret,
)
from management.resources import Resource

SECRET_HEADERS = {"Cache-Control": "no-store"}


class Keys(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    queryset = ApiKey.objects.all()
    serializer_class = KeySerializer
    query_class = KeyQuery
    lookup_field = "public_id"
    lookup_url_kwarg = "id"
    lookup_value_regex = "[a-z0-9]{1,32}"
    required: ClassVar = {
        "list": "api_keys.view_apikey",
        "retrieve": "api_keys.view_apikey",
        "create": "api_keys.add_apikey",
        "partial_update": "api_keys.change_apikey",
        "rotate": "api_keys.change_apikey",
        "revoke": "api_keys.change_apikey",
    }

    def get_queryset(self) -> QuerySet[ApiKey]:
        tenant_id = self.chosen_tenant_id(self.query())
        keys = with_last_use(ApiKey.objects.select_related("tenant"))
        return keys if tenant_id is None else keys.filter(tenant_id=tenant_id)

    def get_serializer_class(self) -> type[KeySerializer] | type[RotationSerializer]:
        if self.action == "rotate":
            return RotationSerializer
        return NewKeySerializer if self.action == "create" else KeySerializer

    @extend_schema(parameters=[KeyQuery])
    def list(self, request: Request) -> Response:
        return super().list(request)

    @extend_schema(responses={201: KeyWithSecretSerializer})
    def create(self, request: Request) -> Response:
        """The answer holds the secret, once."""
        fields = self.body()
        tenant = self.tenant(fields.pop("tenant", None))
        created = create_key(tenant, actor=self.actor, **fields)
        return Response(with_secret(*created), status=201, headers=SECRET_HEADERS)

    def partial_update(self, request: Request, id: str) -> Response:
        key = self.get_object()
        changes = self.body(key)
        if changes:
            update_key(key, actor=self.actor, **changes)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(responses={201: KeyWithSecretSerializer})
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, id: str) -> Response:
        """A new key with the same powers; the old one ends after the grace period."""
        grace = timedelta(seconds=self.body()["grace_seconds"])
        _, plaintext = rotate_key(self.get_object(), grace=grace, actor=self.actor)
        return Response(with_secret(self.get_object(), plaintext), status=201, headers=SECRET_HEADERS)

    @extend_schema(request=None, responses=KeySerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Request, id: str) -> Response:
        """For good, from the very next request on; open streams end within a second."""
        return Response(self.get_serializer(revoke_key(self.get_object(), actor=self.actor)).data)
