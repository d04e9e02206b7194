"""Pages by cursor: no COUNT over big tables, no row twice or never while others are added."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def paginate_queryset(
        self, queryset: QuerySet[Any], request: Request, view: Any = None
    ) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, ValidationError):  # a cursor that nobody was given
            raise NotFound(self.invalid_cursor_message) from None
