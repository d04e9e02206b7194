"""The one ASGI entry: generation to the hot path's application, sockets to Channels, the rest to Django."""

import os
import warnings
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
# Static files are read as WSGI would read them: whole, each once a visit, from this machine.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

from django.core.asgi import get_asgi_application  # noqa: E402

django_application: Any = get_asgi_application()  # before the imports below: it sets up the apps they need

from channels.routing import ProtocolTypeRouter  # noqa: E402

from bulk.http.door import Door  # noqa: E402
from bulk.http.paths import FILES, is_bulk_path  # noqa: E402
from bulk.limits import MAX_FILE_BYTES, MULTIPART_BYTES  # noqa: E402
from control_plane.body_limit import BodyLimit  # noqa: E402
from control_plane.lifespan import run_lifespan  # noqa: E402
from control_plane.routing import is_hot_path, is_loopback  # noqa: E402
from gateway.application import application as hot_path  # noqa: E402
from gateway.live.consumer import LiveConsumer  # noqa: E402

UPLOAD_TIMEOUT_S = 600.0

console_application = BodyLimit(django_application)
bulk_application = Door(console_application)
upload_application = Door(BodyLimit(django_application, MAX_FILE_BYTES + MULTIPART_BYTES, UPLOAD_TIMEOUT_S))
sockets = ProtocolTypeRouter({"websocket": LiveConsumer.as_asgi(gateway=hot_path)})

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await run_lifespan(hot_path, scope, receive, send)
    elif scope["type"] == "websocket":
        await sockets(scope, receive, send)
    elif is_bulk_path(scope["path"]):
        is_upload = scope["path"] == FILES and scope["method"] == "POST"
        await (upload_application if is_upload else bulk_application)(scope, receive, send)
    elif is_hot_path(scope["path"]) or not is_loopback(scope.get("server")):
        await hot_path(scope, receive, send)
    else:  # until operators have a second factor the console answers on loopback addresses only
        await console_application(scope, receive, send)
