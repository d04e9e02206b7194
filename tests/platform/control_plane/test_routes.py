"""Every route, of Django and of the hot path, asks who is there, or is on the short list of public ones."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import redis
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, path, resolve
from django.urls.exceptions import Resolver404
from django.utils.regex_helper import normalize

from control_plane.routing import is_hot_path
from gateway.application import Gateway
from gateway.routes import ROUTES
from gateway.services import Services

PUBLIC_OF_DJANGO = {
    "",  # leads to the console
    "admin/login/",
    "admin/logout/",  # leads back; there is nothing to end
}
PUBLIC_OF_THE_HOT_PATH = {"/health", "/ready", "/v1/openapi.json", "/metrics"}  # the last from loopback only

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
WORDS = ("1", "auth", "tenants", "x", "abc123", "batch_1", "")


class Route(NamedTuple):
    template: str
    callback: Any
    params: tuple[str, ...]


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[Route]:
    for pattern in resolver.url_patterns:
        for part, params in normalize(pattern.pattern.regex.pattern):
            whole = prefix + part
            if isinstance(pattern, URLPattern):
                yield Route(whole, pattern.callback, tuple(params))
            else:
                yield from routes(pattern, whole)


def concrete(route: Route, urlconf: str | None = None) -> str:
    """A path that leads to this route."""
    for word in WORDS:
        found = "/" + route.template % dict.fromkeys(route.params, word)
        try:
            if resolve(found, urlconf).func is route.callback:
                return found
        except Resolver404:
            continue
    raise AssertionError(f"no path leads to {route.template}")


def is_asked_for(response: Any) -> bool:
    """Sent to the login, or told that nobody is there."""
    if response.status_code == 302:
        return str(response.headers["Location"]).startswith("/admin/login/")
    return response.status_code in {401, 403}


def open_routes(urlconf: str | None = None) -> set[str]:
    """What answers an anonymous client with anything else."""
    client = Client()
    found = set()
    for route in routes(get_resolver(urlconf)):
        address = concrete(route, urlconf)
        for method in METHODS:
            if not is_asked_for(getattr(client, method)(address)):
                found.add(route.template)
    return found


def test_what_django_serves_asks_who_is_there(transactional_db: None) -> None:
    templates = {route.template for route in routes(get_resolver())}
    assert len(templates) > 40 and any(each.startswith("api/v1/keys/") for each in templates)
    assert open_routes() == PUBLIC_OF_DJANGO


def open_page(request: HttpRequest, pk: int) -> HttpResponse:
    return HttpResponse(str(pk))


def test_an_open_route_is_noticed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    urlconf = ModuleType("urls_with_a_hole")
    urlconf.urlpatterns = [path("hole/<int:pk>/", open_page)]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "urls_with_a_hole", urlconf)
    settings.ROOT_URLCONF = "urls_with_a_hole"
    assert open_routes("urls_with_a_hole") == {"hole/%(pk)s/"}


async def status_of(gateway: Gateway, method: str, address: str) -> int:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": b"",
        "headers": [(b"cookie", b"sessionid=x")],
        "http_version": "1.1",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await gateway(scope, receive, send)
    return int(sent[0]["status"])


async def test_the_hot_path_asks_for_a_key(loop_store: redis.Redis) -> None:
    gateway = Gateway()
    gateway.services = Services()
    addresses = [*ROUTES.items(), ("/v1/models/m", {"GET": None})]
    assert {address for address, _ in addresses} > PUBLIC_OF_THE_HOT_PATH
    for address, methods in addresses:
        assert is_hot_path(address)
        for method in methods:
            status = await status_of(gateway, method, address)
            assert (status == 401) == (address not in PUBLIC_OF_THE_HOT_PATH), (method, address, status)
