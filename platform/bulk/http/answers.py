"""Answers of Django's /v1 views, in the shapes and with the headers of the hot path."""

from collections.abc import Callable
from typing import Any

import msgspec
from django.http import HttpResponse

from gateway.errors import SHAPES, error_headers, error_object
from inference_engine.contract.codes import Code
from tenants.errors import Denied

JSON = "application/json"


class WrongMediaType(Denied):
    """The body is of a kind that this path can't read."""

    status = 415

    def __init__(self, message: str) -> None:
        super().__init__(Code.INVALID_REQUEST, message)


def json_answer(body: object, status: int = 200) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(body), status=status, content_type=JSON)


def denied_answer(denied: Denied) -> HttpResponse:
    status = denied.status if isinstance(denied, WrongMediaType) else SHAPES[denied.code].status
    answer = json_answer(error_object(denied), status)
    for name, value in error_headers(denied).items():
        answer.headers[name] = value
    return answer


def not_found(kind: str, public_id: str) -> Denied:
    """The same for what isn't there and for what is another tenant's."""
    return Denied(Code.NOT_FOUND, f"No such {kind}: '{public_id[:64]}'.")


def page(found: list[Any], limit: int, shape: Callable[[Any], dict[str, object]]) -> dict[str, object]:
    """`found` may hold one more than `limit`, which tells whether there are more."""
    shown = [shape(each) for each in found[:limit]]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(found) > limit,
    }
