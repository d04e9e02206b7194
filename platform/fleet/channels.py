"""How an engine is dialled: a unix socket or loopback in the clear, anything else by mutual TLS only."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

import grpc

from fleet.failures import SessionFailed
from inference_engine.contract.limits import MAX_FRAME_BYTES

OPTIONS = [
    ("grpc.max_receive_message_length", MAX_FRAME_BYTES),
    ("grpc.max_send_message_length", MAX_FRAME_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: this gateway's certificate chain and key, and the authorities that sign engines."""

    cert: Path
    key: Path
    authorities: Path


def dial(address: str, tls: TlsFiles | None) -> grpc.aio.Channel:
    """Raises SessionFailed for a plain address on another machine, OSError for a file that can't be read."""
    if address.startswith("unix:") or (tls is None and is_loopback(address)):
        return grpc.aio.insecure_channel(address, options=OPTIONS)
    if tls is None:
        raise SessionFailed(f"{address} is beyond loopback, which needs mutual TLS")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=tls.authorities.read_bytes(),
        private_key=tls.key.read_bytes(),
        certificate_chain=tls.cert.read_bytes(),
    )
    return grpc.aio.secure_channel(address, credentials, options=OPTIONS)


def is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0]
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
