"""Where a key may be used from."""

import ipaddress
from collections.abc import Sequence

from django.core.exceptions import ValidationError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(names: Sequence[str] | None) -> tuple[Network, ...] | None:
    """None: from anywhere. Raises ValueError."""
    return None if names is None else tuple(ipaddress.ip_network(name) for name in names)


def is_within(networks: Sequence[Network] | None, address: str) -> bool:
    """An address that can't be read, as over a unix socket, is in no network."""
    if networks is None:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return any((mapped or found) in network for network in networks)


def validate_networks(value: object) -> None:
    message = 'Must be a list of networks, e.g. ["10.0.0.0/8", "2001:db8::1"].'
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise ValidationError(message)
    try:
        parse_networks(value)
    except ValueError as error:
        raise ValidationError(message) from error
