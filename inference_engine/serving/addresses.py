"""Where an engine listens: a unix socket that only its owner can reach, or host:port with mutual TLS."""

import ipaddress
import os
import socket
import stat
from pathlib import Path

import grpc

UNIX_PREFIX = "unix:"
MAX_SOCKET_PATH_BYTES = 107
"""sun_path of Linux less its final zero byte."""


class AddressError(ValueError):
    """An address that can't be listened on, or would be open to others."""


def is_unix(address: str) -> bool:
    return address.startswith(UNIX_PREFIX)


def check_exposure(address: str, *, has_tls: bool) -> None:
    """Raises AddressError where the address is malformed or reachable by others without mutual TLS."""
    if is_unix(address):
        path = address.removeprefix(UNIX_PREFIX)
        if not path.startswith("/") or len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
            raise AddressError(
                f"{path}: a socket needs an absolute path of at most {MAX_SOCKET_PATH_BYTES} bytes"
            )
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not host:
        raise AddressError(f"{address}: expected unix:/path or host:port")
    if not has_tls and not _is_loopback(host):
        raise AddressError(
            f"{address}: listening beyond loopback needs mutual TLS (tls_cert, tls_key, tls_ca)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def prepare_socket(address: str) -> None:
    """Make a private folder for the socket; refuse one open to others, and a path that is being served."""
    path = Path(address.removeprefix(UNIX_PREFIX))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    if mode & 0o077:
        raise AddressError(
            f"{path.parent} is open to others (mode {mode:o}); sockets need a folder of mode 700"
        )
    if _answers(path):
        raise AddressError(f"{path} is served by another process")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True


def tls_credentials(cert: Path, key: Path, authorities: Path) -> grpc.ServerCredentials:
    """Mutual TLS: a client without a certificate of these authorities is not let in."""
    pair = (key.read_bytes(), cert.read_bytes())
    return grpc.ssl_server_credentials(
        [pair], root_certificates=authorities.read_bytes(), require_client_auth=True
    )
