"""Which view answers what below /v1/files and /v1/batches."""

import re
from collections.abc import Callable

from django.http import HttpResponseBase

from bulk.http.batch_views import list_batches, make_batch, show_batch, stop_batch
from bulk.http.file_views import create_file, list_files, remove_file, show_content, show_file
from bulk.http.paths import BATCHES, FILES
from inference_engine.contract.codes import Code
from tenants.errors import Denied

View = Callable[..., HttpResponseBase]

ROUTES: dict[str, dict[str, View]] = {
    FILES: {"GET": list_files, "POST": create_file},
    f"{FILES}/{{id}}": {"GET": show_file, "DELETE": remove_file},
    f"{FILES}/{{id}}/content": {"GET": show_content},
    BATCHES: {"GET": list_batches, "POST": make_batch},
    f"{BATCHES}/{{id}}": {"GET": show_batch},
    f"{BATCHES}/{{id}}/cancel": {"POST": stop_batch},
}
_PATTERNS = [
    (re.compile(re.escape(path).replace(r"\{id\}", r"(?P<public_id>[^/\x00]+)")), methods)
    for path, methods in ROUTES.items()
]


def find_view(method: str, path: str) -> tuple[View, dict[str, str]]:
    """And what the path names. Raises Denied: NOT_FOUND, METHOD_NOT_ALLOWED."""
    for pattern, methods in _PATTERNS:
        if (found := pattern.fullmatch(path)) is None:
            continue
        if method in methods:
            return methods[method], found.groupdict()
        allowed = ", ".join(methods)
        message = f"{path} does not take {method}; it takes {allowed}."
        raise Denied(Code.METHOD_NOT_ALLOWED, message, headers={"allow": allowed})
    raise Denied(Code.NOT_FOUND, f"Unknown request URL: {method} {path}.")
