"""GET /metrics, for Prometheus: OCTAVO_METRICS_TOKEN as a bearer token, or, without one, from loopback."""

import secrets
from ipaddress import ip_address

from django.conf import settings
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.services import Services
from gateway.transport.exchange import Exchange
from inference_engine.contract.codes import Code
from tenants.errors import Denied


async def metrics(exchange: Exchange, services: Services) -> None:
    if not _may_read(exchange):
        raise Denied(Code.INVALID_API_KEY, "Metrics need OCTAVO_METRICS_TOKEN as a bearer token.")
    await exchange.send_bytes(200, generate_latest(), {"content-type": CONTENT_TYPE_LATEST})


def _may_read(exchange: Exchange) -> bool:
    token = settings.OCTAVO_METRICS_TOKEN
    if not token:
        return _is_loopback(exchange.address)
    given = exchange.header(b"authorization") or b""
    return secrets.compare_digest(given, b"Bearer " + token.encode())


def _is_loopback(address: str) -> bool:
    """Nothing but this machine reaches a unix socket, whose peers have no address."""
    try:
        return not address or ip_address(address).is_loopback
    except ValueError:
        return False
