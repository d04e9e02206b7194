"""Tenants: their policy, suspending and activating them."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from unfold.decorators import action

from console.acting import actor_of, changes_of
from console.read_only import UndeletableAdmin
from tenants.models import Tenant
from tenants.services import activate_tenant, create_tenant, suspend_tenant, update_tenant


@admin.register(Tenant)
class TenantAdmin(UndeletableAdmin):
    list_display = ("name", "slug", "status", "service_class", "weight")
    list_filter = ("status", "service_class")
    search_fields = ("name", "slug")
    readonly_fields = ("policy_epoch", "created_at")
    actions = ("suspend", "activate")
    actions_detail = ("new_key", "new_limit", "ledger")

    def get_prepopulated_fields(self, request: HttpRequest, obj: Tenant | None = None) -> dict[str, Any]:
        return {} if obj else {"slug": ("name",)}

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        if change:
            update_tenant(obj, actor=actor_of(request), **changes_of(form))
        else:
            obj.pk = create_tenant(actor=actor_of(request), **form.cleaned_data).pk

    @admin.action(description="Suspend", permissions=["change"])
    def suspend(self, request: HttpRequest, chosen: QuerySet[Tenant]) -> None:
        for tenant in chosen:
            suspend_tenant(tenant, actor=actor_of(request))
        self.message_user(request, "Suspended; their keys are refused from now on.", messages.SUCCESS)

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, chosen: QuerySet[Tenant]) -> None:
        for tenant in chosen:
            activate_tenant(tenant, actor=actor_of(request))
        self.message_user(request, "Activated.", messages.SUCCESS)

    def has_new_key_permission(self, request: HttpRequest, object_id: int | None = None) -> bool:
        return request.user.has_perm("api_keys.add_apikey")

    def has_new_limit_permission(self, request: HttpRequest, object_id: int | None = None) -> bool:
        return request.user.has_perm("quotas.add_limit")

    def has_ledger_permission(self, request: HttpRequest, object_id: int | None = None) -> bool:
        return request.user.has_perm("usage.view_ledgerentry")

    @action(description="New API key", permissions=["new_key"])
    def new_key(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect(f"{reverse('admin:api_keys_apikey_add')}?tenant={object_id}")

    @action(description="New limit", permissions=["new_limit"])
    def new_limit(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect(f"{reverse('admin:quotas_limit_add')}?tenant={object_id}")

    @action(description="Ledger", permissions=["ledger"])
    def ledger(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect(f"{reverse('admin:usage_ledgerentry_changelist')}?tenant_id__exact={object_id}")
