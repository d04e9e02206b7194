"""`octavo_<id>_<secret>`: the id is public, the secret 256 random bits in hex."""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import NamedTuple

PREFIX = "octavo"
ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
ID_LENGTH = 12
SECRET_BYTES = 32
MAX_HEADER_BYTES = 256

_KEY = re.compile(rb"octavo_([a-z0-9]{1,32})_([0-9a-f]{64})")
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +(\S+) *")


class PresentedKey(NamedTuple):
    public_id: str
    digest: bytes


class KnownSecret(NamedTuple):
    """What is kept of a key's secret, and for a while after a rotation of the one before."""

    digest: bytes
    previous_digest: bytes | None = None
    previous_until: datetime | None = None

    def is_known(self, digest: bytes, now: datetime) -> bool:
        """Compared in constant time."""
        if hmac.compare_digest(self.digest, digest):
            return True
        if self.previous_digest is None or self.previous_until is None or self.previous_until <= now:
            return False
        return hmac.compare_digest(self.previous_digest, digest)

    def ends_at(self, digest: bytes) -> datetime | None:
        """Of a known one; None: it is the present one."""
        return None if hmac.compare_digest(self.digest, digest) else self.previous_until


class NewKey(NamedTuple):
    public_id: str
    digest: bytes
    plaintext: str


def draw_key() -> NewKey:
    return draw_secret("".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH)))


def draw_secret(public_id: str) -> NewKey:
    """Another secret for a key that keeps its id."""
    secret = secrets.token_hex(SECRET_BYTES)
    return NewKey(public_id, digest_of(secret.encode()), f"{PREFIX}_{public_id}_{secret}")


def digest_of(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def parse_authorization(header: bytes | str | None) -> PresentedKey | None:
    """The key of a `Bearer` header; None for whatever isn't one, without ever raising."""
    if header is None:
        return None
    raw = header.encode("utf-8", "replace") if isinstance(header, str) else header
    if len(raw) > MAX_HEADER_BYTES:
        return None
    bearer = _BEARER.fullmatch(raw)
    key = _KEY.fullmatch(bearer[1]) if bearer else None
    return PresentedKey(key[1].decode("ascii"), digest_of(key[2])) if key else None
