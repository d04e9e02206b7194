"""Rows chosen for an action, as a page sends them."""

from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from unfold.admin import ModelAdmin

MAX_DIGITS = 18
"""Of an id that fits its column."""


class ChosenRowsAdmin(ModelAdmin):
    """An id that no row can have chooses nothing; Django alone would answer it with 500."""

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase | None:
        form = request.POST.copy()
        chosen = [each for each in form.getlist(ACTION_CHECKBOX_NAME) if _is_id(str(each))]
        form.setlist(ACTION_CHECKBOX_NAME, chosen)
        request.POST = form  # type: ignore[assignment]
        return super().response_action(request, queryset)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
