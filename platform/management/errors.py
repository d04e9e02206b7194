"""Every failure of the management API as one shape: {"error": {message, type, param, code}}."""

from typing import Any

import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from inference_engine.contract.codes import Code

log = structlog.get_logger(__name__)

RETRY_AFTER_S = "1"
_CODES: tuple[tuple[type[exceptions.APIException], Code], ...] = (
    (exceptions.ParseError, Code.INVALID_JSON),
    (exceptions.NotAuthenticated, Code.INVALID_API_KEY),
    (exceptions.AuthenticationFailed, Code.INVALID_API_KEY),
    (exceptions.PermissionDenied, Code.INSUFFICIENT_PERMISSIONS),
    (exceptions.NotFound, Code.NOT_FOUND),
    (exceptions.MethodNotAllowed, Code.METHOD_NOT_ALLOWED),
)


class Gone(exceptions.NotFound):
    """Not there, or another tenant's: nobody can tell which."""

    default_detail = "No such object."


class StoreUnavailable(exceptions.APIException):
    status_code = 503
    default_detail = "The service can't answer right now."


class Broken(exceptions.APIException):
    """Says nothing of what happened: that is in the log, under the request's id."""

    default_detail = "The server had an error while processing the request."


def answer_error(error: Exception, context: dict[str, Any]) -> Response:
    known = _as_api_exception(error)
    if isinstance(known, Broken):
        log.exception("management_request_broke", path=context["request"].path)
    message, param = _message_and_param(known)
    body = {
        "message": message,
        "type": _type_of(known),
        "param": param,
        "code": _code_of(known).value,
    }
    return Response({"error": body}, status=known.status_code, headers=_headers(known))


def _as_api_exception(error: Exception) -> exceptions.APIException:
    if isinstance(error, exceptions.APIException):
        return error
    if isinstance(error, Http404):
        return Gone()
    if isinstance(error, DjangoPermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, DjangoValidationError):
        return exceptions.ValidationError(
            error.message_dict if hasattr(error, "error_dict") else error.messages
        )
    if isinstance(error, OperationalError | InterfaceError):
        log.warning("management_database_unavailable", error=str(error))
        return StoreUnavailable()
    return Broken()


def _message_and_param(error: exceptions.APIException) -> tuple[str, str | None]:
    """The first thing that is wrong; `param` is its path, such as allowed_models.0."""
    detail: Any = error.detail
    path: list[str] = []
    while isinstance(detail, dict | list) and detail:
        if isinstance(detail, dict):
            name, detail = next(iter(detail.items()))
            path.append(str(name))
        else:
            detail = next(item for item in detail if item)
    names = [name for name in path if name not in {"non_field_errors", "__all__", "detail"}]
    return str(detail), ".".join(names) or None


def _code_of(error: exceptions.APIException) -> Code:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if error.status_code >= 500:
        return Code.STORE_UNAVAILABLE if error.status_code == 503 else Code.INTERNAL_ERROR
    return Code.INVALID_REQUEST


def _type_of(error: exceptions.APIException) -> str:
    if error.status_code >= 500:
        return "server_error"
    return "permission_error" if error.status_code == 403 else "invalid_request_error"


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    if error.status_code == 503:
        headers["Retry-After"] = RETRY_AFTER_S
    return headers
