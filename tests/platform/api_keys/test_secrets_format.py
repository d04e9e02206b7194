"""Keys as text: what is drawn can be read back, what is anything else is nothing."""

import hashlib

import pytest

from api_keys.secrets_format import draw_key, parse_authorization


def test_a_drawn_key_is_read_back_from_its_header() -> None:
    drawn = draw_key()
    prefix, public_id, secret = drawn.plaintext.split("_")

    assert (prefix, public_id) == ("octavo", drawn.public_id)
    assert len(bytes.fromhex(secret)) == 32
    assert drawn.digest == hashlib.sha256(secret.encode()).digest()
    for header in (
        f"Bearer {drawn.plaintext}",
        f"bearer  {drawn.plaintext} ",
        f"BEARER {drawn.plaintext}".encode(),
    ):
        assert parse_authorization(header) == (drawn.public_id, drawn.digest)


def test_two_keys_are_different() -> None:
    assert len({draw_key().plaintext for _ in range(100)}) == 100


SECRET = "0" * 64


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        b"",
        "Bearer",
        "Bearer ",
        f"Basic octavo_abc_{SECRET}",
        f"octavo_abc_{SECRET}",
        f"Bearer octavo_abc_{SECRET}0",
        f"Bearer octavo_abc_{SECRET[:-1]}",
        f"Bearer octavo__{SECRET}",
        f"Bearer OCTAVO_abc_{SECRET}",
        f"Bearer octavo_abc_{SECRET[:-1]}g",
        f"Bearer octavo_abc_{SECRET} x",
        f"Bearer octavo_abc_{SECRET}\n",
        "Bearer ключ",
        "Bearer octavo_äbc_" + SECRET,
        "Bearer octavo_abc_" + "٣" * 64,
        "Bearer \ud800",
        b"Bearer \xff\xfe\x00",
        b"Bearer octavo_abc_" + b"\xe9" * 64,
        b"Bearer " + b"a" * 1_000_000,
    ],
)
def test_anything_else_is_no_key(header: bytes | str | None) -> None:
    assert parse_authorization(header) is None
