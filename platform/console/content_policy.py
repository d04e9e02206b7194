"""The Content-Security-Policy of pages for people.

The admin theme draws its menus with Alpine, which compiles expressions at run time: its pages need
`unsafe-eval` for scripts, and inline styles. Everything else that Django serves gets the strict policy.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
ADMIN = STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-eval'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)


class ContentPolicyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = ADMIN if request.path.startswith("/admin/") else STRICT
        response.headers.setdefault("Content-Security-Policy", policy)
        return response
