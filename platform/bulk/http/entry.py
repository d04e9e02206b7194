"""The way of /v1/files and /v1/batches through Django: no cookies, no sessions, no host names, no HTML."""

import time
from collections.abc import Callable

import structlog
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponseBase
from django.http.request import UnreadablePostError

from api_keys.principal import Principal
from bulk.files.storage import StorageUnavailable
from bulk.http.answers import denied_answer
from bulk.http.door import PRINCIPAL
from bulk.http.paths import is_bulk_path
from bulk.http.routes import find_view
from gateway.errors import internal_error
from inference_engine.contract.codes import Code
from tenants.errors import Denied, store_unavailable

log = structlog.get_logger(__name__)


class BulkMiddleware:
    """Answers these paths itself, ahead of every middleware that is for people and browsers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_bulk_path(request.path):
            return self._get_response(request)
        started_at = time.monotonic()
        answer = answer_request(request)
        answer.headers["openai-processing-ms"] = str(round((time.monotonic() - started_at) * 1000))
        return answer


def answer_request(request: HttpRequest) -> HttpResponseBase:
    try:
        view, named = find_view(request.method or "", request.path)
        return view(request, _principal(request), **named)
    except Denied as denied:
        return denied_answer(denied)
    except UnreadablePostError:
        return denied_answer(Denied(Code.CLIENT_GONE, "The request broke off."))
    except (DatabaseError, InterfaceError, StorageUnavailable) as error:
        log.warning("store_unavailable", error=str(error))
        return denied_answer(store_unavailable())
    except Exception:
        log.exception("request_broke", path=request.path)
        return denied_answer(internal_error())


def _principal(request: HttpRequest) -> Principal:
    """Who came through the door. Over any other way in there is nobody."""
    found = getattr(request, "scope", {}).get(PRINCIPAL)
    if not isinstance(found, Principal):
        raise Denied(Code.INVALID_API_KEY, "Incorrect API key provided.")
    return found
