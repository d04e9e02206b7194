"""API keys. A secret is in the answer that made it, and on no other page."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from api_keys.models import ApiKey
from api_keys.scopes import Scope
from api_keys.selectors import with_last_use
from api_keys.services import create_key, revoke_key, rotate_key, update_key
from console.acting import actor_of, changes_of
from console.read_only import UndeletableAdmin

GRACES = {0: "at once", 3600: "after an hour", 86400: "after a day", 604800: "after a week"}


class KeyForm(forms.ModelForm):
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, widget=UnfoldAdminCheckboxSelectMultipleWidget, initial=[Scope.INFERENCE.value]
    )


class RotationForm(forms.Form):
    grace_seconds = forms.TypedChoiceField(
        label="The old secret ends",
        choices=tuple(GRACES.items()),
        coerce=int,
        widget=UnfoldAdminSelectWidget,
    )


@admin.register(ApiKey)
class ApiKeyAdmin(UndeletableAdmin):
    form = KeyForm
    list_display = ("public_id", "name", "tenant", "scopes", "usable", "last_used", "expires_at")
    list_select_related = ("tenant",)
    search_fields = ("public_id__exact", "name", "tenant__name")
    autocomplete_fields = ("tenant",)
    fields = (
        "tenant",
        "name",
        "scopes",
        "expires_at",
        "allowed_models",
        "allowed_networks",
        "public_id",
        "created_at",
        "revoked_at",
        "previous_until",
        "last_used",
    )
    readonly_fields = ("public_id", "created_at", "revoked_at", "previous_until", "last_used")
    actions = ("revoke",)
    actions_detail = ("rotate",)

    @admin.display(boolean=True)
    def usable(self, key: ApiKey) -> bool:
        return key.is_usable

    @admin.display(empty_value="never")
    def last_used(self, key: ApiKey) -> datetime | None:
        """When its newest request ended; of a key that is being added there is none."""
        return getattr(key, "last_used_at", None)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return with_last_use(super().get_queryset(request))

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
        return self._secret_page(request, obj, request.created_key)  # type: ignore[attr-defined]

    def has_rotate_permission(self, request: HttpRequest, object_id: int | None = None) -> bool:
        return request.user.has_perm("api_keys.change_apikey")

    @action(description="New secret", permissions=["rotate"])
    def rotate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        key = get_object_or_404(ApiKey, pk=object_id)
        form = RotationForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            grace = timedelta(seconds=form.cleaned_data["grace_seconds"])
            try:
                return self._secret_page(request, *rotate_key(key, grace=grace, actor=actor_of(request)))
            except ValidationError as error:
                self.message_user(request, " ".join(error.messages), messages.ERROR)
                return redirect(reverse("admin:api_keys_apikey_change", args=[key.pk]))
        context = {
            **self.admin_site.each_context(request),
            "title": "New secret",
            "key": key,
            "form": form,
        }
        return render(request, "console/rotate_key.html", context)

    def _secret_page(self, request: HttpRequest, key: ApiKey, plaintext: str) -> HttpResponse:
        """The only page that shows the secret is this very answer: no redirect, cookie or cache holds it."""
        context = {
            **self.admin_site.each_context(request),
            "title": "API key created",
            "key": key,
            "plaintext": plaintext,
        }
        response = render(request, "console/key_created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        for key in chosen:
            revoke_key(key, actor=actor_of(request))
        self.message_user(request, "Revoked; open streams end within a second.", messages.SUCCESS)
