"""Query parameters of the lists. One that nobody knows is an error: a typo must not change what is asked."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from inference_engine.contract.codes import Code
from tenants.errors import Denied

MAX_DIGITS = 9


class Query:
    def __init__(self, request: HttpRequest, *known: str) -> None:
        """Raises Denied."""
        for name in request.GET:
            if name not in known:
                raise invalid(name[:64], f"Unknown query parameter: '{name[:64]}'.")
        self._given = request.GET

    def text(self, name: str) -> str | None:
        """Raises Denied."""
        value = self._given.get(name) or None
        if value is not None and "\x00" in value:  # PostgreSQL would not even look for it
            raise invalid(name, f"'{name}' must not hold a NUL.")
        return value

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self._given.get(name, default)
        if value not in choices:
            raise invalid(name, f"'{name}' must be one of: {', '.join(choices)}.")
        return value

    def number(self, name: str, default: int, most: int) -> int:
        value = self._given.get(name, str(default))
        is_number = value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS
        if not is_number or not 1 <= int(value) <= most:
            raise invalid(name, f"'{name}' must be a number from 1 to {most}.")
        return int(value)


def after(rows: "QuerySet[Any]", public_id: str | None, order: str) -> "QuerySet[Any]":
    """Those that follow `public_id` in this order; `rows` of one tenant only. Raises Denied."""
    ordered = rows.order_by("id" if order == "asc" else "-id")
    if public_id is None:
        return ordered
    last = rows.filter(public_id=public_id).values_list("pk", flat=True).first()
    if last is None:
        raise invalid("after", f"'after' names nothing that is in this list: '{public_id[:64]}'.")
    return ordered.filter(pk__gt=last) if order == "asc" else ordered.filter(pk__lt=last)


def invalid(param: str, message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param=param)
