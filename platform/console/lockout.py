"""Too many failed logins from one address: for a while not even the right password is looked at.

Counted in Redis, by name and address and by address alone. While Redis is away nothing is counted: operators
must get in, and nothing is served then anyway.
"""

import hashlib
from typing import Any

import redis
import structlog
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from audit.origin import ANONYMOUS
from audit.services import record
from tenants.shards import blocking_redis

log = structlog.get_logger(__name__)

WINDOW_S = 900
MAX_FAILURES = 10
"""With one name from one address."""
MAX_FAILURES_OF_ADDRESS = 50


class LockoutBackend(ModelBackend):
    """Names and passwords as Django keeps them, for whoever isn't locked out."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User | None:  # type: ignore[override]
        """Raises PermissionDenied, after which nobody else is asked."""
        if request is not None and is_locked(_address(request), str(credentials.get("username", ""))):
            request.is_locked_out = True  # type: ignore[attr-defined]  # audit/logins.py writes no more rows
            raise PermissionDenied("Too many failed logins.")
        return super().authenticate(request, **credentials)


def is_locked(address: str, name: str) -> bool:
    try:
        counts = [int(found or 0) for found in blocking_redis().mget(_keys(address, name))]
    except redis.RedisError as error:
        log.warning("failed_logins_not_read", error=str(error))
        return False
    return counts[0] >= MAX_FAILURES or counts[1] >= MAX_FAILURES_OF_ADDRESS


@receiver(user_login_failed, dispatch_uid="console_login_failed")
def on_failed_login(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is None or getattr(request, "is_locked_out", False):
        return
    try:
        with blocking_redis().pipeline() as pipeline:
            for key in _keys(_address(request), str(credentials.get("username", ""))):
                pipeline.incr(key)
                pipeline.expire(key, WINDOW_S, nx=True)
            of_name, _, of_address, _ = pipeline.execute()
    except redis.RedisError as error:
        log.warning("failed_login_not_counted", error=str(error))
        return
    if of_name == MAX_FAILURES or of_address == MAX_FAILURES_OF_ADDRESS:
        record(ANONYMOUS, "session.locked_out", "console", {"seconds": WINDOW_S})


@receiver(user_logged_in, dispatch_uid="console_logged_in")
def on_login(request: HttpRequest | None, user: Any, **_: Any) -> None:
    """The right password clears the failures with this name."""
    if request is None:
        return
    try:
        blocking_redis().delete(_keys(_address(request), user.get_username())[0])
    except redis.RedisError as error:
        log.warning("failed_logins_not_cleared", error=str(error))


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def _keys(address: str, name: str) -> list[str]:
    """Names are hashed: people type passwords into that field."""
    digest = hashlib.sha256(f"{address}\x00{name}".encode("utf-8", "surrogatepass")).hexdigest()
    return [f"octavo:{{logins}}:failed:{digest}", f"octavo:{{logins}}:failed_from:{address}"]
