"""Keys that are for some networks only."""

import pytest
from django.core.exceptions import ValidationError

from api_keys.networks import is_within, parse_networks, validate_networks

NETWORKS = parse_networks(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:db8::5", True),
        ("2001:db9::5", False),
        ("::ffff:10.0.0.1", True),  # IPv4 on a socket that listens for both
        ("::ffff:11.0.0.1", False),
        ("", False),
        ("unix", False),
    ],
)
def test_addresses(address: str, expected: bool) -> None:
    assert is_within(NETWORKS, address) is expected
    assert is_within(None, address)


@pytest.mark.parametrize("wrong", [[], "10.0.0.0/8", ["10.0.0.1/8"], ["example.org"], [5], None, {"a": 1}])
def test_what_is_no_list_of_networks_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        validate_networks(wrong)


def test_a_list_of_networks_is_fine() -> None:
    validate_networks(["10.0.0.0/8", "::1"])
