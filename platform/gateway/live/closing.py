"""How sockets end: the codes of our own, beside those of RFC 6455."""

from enum import IntEnum


class CloseCode(IntEnum):
    NORMAL = 1000
    """Also after the longest life of a socket."""
    INTERNAL_ERROR = 1011
    RESTART = 1012
    """The server says so, when it stops."""
    ACCESS_WITHDRAWN = 4401
    """The key was revoked or has expired, or the account is suspended."""
    SLOW_READER = 4408
