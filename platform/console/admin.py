"""The admin site's pages. They show and ask; every change is made by the services."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from api_keys.models import ApiKey
from api_keys.services import create_key, revoke_key, update_key
from audit.logins import user_actor
from audit.models import AuditRecord
from console.read_only import ReadOnlyAdmin, UndeletableAdmin
from tenants.models import Tenant
from tenants.services import activate_tenant, create_tenant, suspend_tenant, update_tenant
from usage.models import LedgerEntry

admin.site.unregister(User)
admin.site.unregister(Group)


def actor_of(request: HttpRequest) -> str:
    return user_actor(request.user.get_username())


def changes_of(form: Any) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in form.changed_data}


@admin.register(User)
class OperatorAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Tenant)
class TenantAdmin(UndeletableAdmin):
    list_display = ("name", "slug", "status", "service_class", "weight")
    list_filter = ("status", "service_class")
    search_fields = ("name", "slug")
    readonly_fields = ("policy_epoch", "created_at")
    actions = ("suspend", "activate")
    actions_detail = ("new_key",)

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

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, chosen: QuerySet[Tenant]) -> None:
        for tenant in chosen:
            activate_tenant(tenant, actor=actor_of(request))

    def has_new_key_permission(self, request: HttpRequest, object_id: int | None = None) -> bool:
        return request.user.has_perm("api_keys.add_apikey")

    @action(description="New API key", permissions=["new_key"])
    def new_key(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return redirect(f"{reverse('admin:api_keys_apikey_add')}?tenant={object_id}")


@admin.register(ApiKey)
class ApiKeyAdmin(UndeletableAdmin):
    list_display = ("public_id", "name", "tenant", "usable", "created_at", "expires_at", "revoked_at")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("public_id", "name", "tenant__name")
    fields = (
        "tenant",
        "name",
        "expires_at",
        "allowed_models",
        "public_id",
        "created_at",
        "revoked_at",
    )
    readonly_fields = ("public_id", "created_at", "revoked_at")
    actions = ("revoke",)

    @admin.display(boolean=True)
    def usable(self, key: ApiKey) -> bool:
        return key.is_usable

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "tenant") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            update_key(obj, actor=actor_of(request), **changes_of(form))
            return
        created, plaintext = create_key(actor=actor_of(request), **form.cleaned_data)
        obj.pk, obj.public_id = created.pk, created.public_id
        request.created_key = plaintext  # type: ignore[attr-defined]  # for this one answer, kept nowhere

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The only page that shows the secret is this very answer: no redirect, cookie or cache holds it."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API key created",
            "key": obj,
            "plaintext": request.created_key,  # type: ignore[attr-defined]
        }
        response = render(request, "console/key_created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        for key in chosen:
            revoke_key(key, actor=actor_of(request))
        self.message_user(request, "Revoked; open streams end within a second.", messages.SUCCESS)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = (
        "request_id",
        "tenant_name",
        "key_name",
        "model",
        "prompt_tokens",
        "output_tokens",
        "ending",
        "code",
        "finished_at",
    )
    list_filter = ("ending", "source", "endpoint")
    search_fields = ("=request_id", "=key_id", "=tenant_name")
    show_full_result_count = False


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor", "action", "subject")
    list_filter = ("action",)
    search_fields = ("=subject", "=actor")
    show_full_result_count = False
