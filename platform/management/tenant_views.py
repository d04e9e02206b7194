"""/api/v1/tenants/"""

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from management.resources import Resource
from management.tenant_shapes import TenantSerializer
from tenants.models import Tenant
from tenants.services import activate_tenant, create_tenant, suspend_tenant, update_tenant


class Tenants(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    serializer_class = TenantSerializer
    queryset = Tenant.objects.all()
    lookup_value_regex = "[0-9]{1,18}"
    required: ClassVar = {
        "list": "tenants.view_tenant",
        "retrieve": "tenants.view_tenant",
        "create": "tenants.add_tenant",
        "partial_update": "tenants.change_tenant",
        "suspend": "tenants.change_tenant",
        "activate": "tenants.change_tenant",
    }

    def get_queryset(self) -> QuerySet[Tenant]:
        tenant_id = self.caller.tenant_id
        return Tenant.objects.all() if tenant_id is None else Tenant.objects.filter(pk=tenant_id)

    def create(self, request: Request) -> Response:
        tenant = create_tenant(actor=self.actor, **self.body())
        return Response(self.get_serializer(tenant).data, status=201)

    def partial_update(self, request: Request, pk: str) -> Response:
        tenant = self.get_object()
        changes = self.body(tenant)
        if changes:
            tenant = update_tenant(tenant, actor=self.actor, **changes)
        return Response(self.get_serializer(tenant).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def suspend(self, request: Request, pk: str) -> Response:
        """Its keys are refused from the very next request on."""
        return Response(self.get_serializer(suspend_tenant(self.get_object(), actor=self.actor)).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def activate(self, request: Request, pk: str) -> Response:
        return Response(self.get_serializer(activate_tenant(self.get_object(), actor=self.actor)).data)
