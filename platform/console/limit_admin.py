"""Limits of tenants, of keys and of models."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from console.acting import actor_of
from console.chosen_rows import ChosenRowsAdmin
from quotas.models import Limit
from quotas.selectors import scope_of
from quotas.services import clear_limit, set_limit

IDENTITY = ("tenant", "key", "model", "kind")


class LimitForm(forms.ModelForm):
    def clean(self) -> dict[str, Any] | None:
        """Whose limit it is follows from what is named."""
        cleaned = super().clean() or {}
        if "kind" not in self.fields:
            return cleaned
        key, model = cleaned.get("key"), cleaned.get("model", "")
        if key is not None and model:
            raise ValidationError("A limit is of a key or of a model, not of both.")
        self.instance.scope = scope_of(None if key is None else key.pk, model)
        return cleaned


@admin.register(Limit)
class LimitAdmin(ChosenRowsAdmin):
    form = LimitForm
    list_display = ("tenant", "scope", "key", "model", "kind", "value", "burst")
    list_filter = ("scope", "kind")
    list_select_related = ("tenant", "key")
    search_fields = ("tenant__name", "tenant__slug", "key__public_id__exact", "model__exact")
    autocomplete_fields = ("tenant", "key")
    fields = (*IDENTITY, "value", "burst")

    def get_readonly_fields(self, request: HttpRequest, obj: Limit | None = None) -> tuple[str, ...]:
        return IDENTITY if obj else ()

    def save_model(self, request: HttpRequest, obj: Limit, form: Any, change: bool) -> None:
        obj.pk = set_limit(
            obj.tenant,
            obj.kind,
            obj.value,
            key=obj.key,
            model=obj.model,
            burst=obj.burst,
            actor=actor_of(request),
        ).pk

    def delete_model(self, request: HttpRequest, obj: Limit) -> None:
        clear_limit(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Limit]) -> None:
        for limit in queryset.select_related("tenant", "key"):
            clear_limit(limit, actor=actor_of(request))
