"""GET /health: this process answers. GET /ready: a request would be served."""

from gateway.services import Services
from gateway.transport.exchange import Exchange
from inference_engine.contract.codes import Code
from tenants.errors import Denied

RETRY_S = 1.0


async def health(exchange: Exchange, services: Services) -> None:
    await exchange.send_bytes(200, b'{"status":"ok"}')


async def ready(exchange: Exchange, services: Services) -> None:
    if not services.ready_models():
        raise Denied(Code.NO_READY_REPLICA, "No engine is ready.", retry_after_s=RETRY_S)
    await exchange.send_bytes(200, b'{"status":"ready"}')
