"""Guessing passwords: after a few tries the right one is of no use for a while; the trail does not grow."""

from collections import Counter
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audit.models import AuditRecord
from console import lockout

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def alice(transactional_db: None, store: redis.Redis, settings: Any) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a real one takes its time
    for key in store.scan_iter("octavo:{logins}:*"):
        store.delete(key)
    return User.objects.create_superuser("alice", password=PASSWORD)


def gets_in(password: str, name: str = "alice", address: str = "127.0.0.9") -> bool:
    client = Client(REMOTE_ADDR=address)
    client.post(reverse("admin:login"), {"username": name, "password": password})
    return client.get(reverse("admin:index")).status_code == 200


def actions() -> list[str]:
    return list(AuditRecord.objects.filter(action__startswith="session.").values_list("action", flat=True))


def test_after_ten_failures_nobody_gets_in_from_there(store: redis.Redis) -> None:
    for _ in range(lockout.MAX_FAILURES):
        assert not gets_in("wrong")
    assert not gets_in(PASSWORD)
    assert gets_in(PASSWORD, address="127.0.0.8")
    for key in store.scan_iter("octavo:{logins}:*"):
        assert 0 < store.ttl(key) <= lockout.WINDOW_S
        store.delete(key)  # the window ends
    assert gets_in(PASSWORD)


def test_what_is_tried_then_leaves_no_more_records() -> None:
    for _ in range(lockout.MAX_FAILURES + 5):
        gets_in("wrong")
    assert Counter(actions()) == {"session.login_failed": lockout.MAX_FAILURES, "session.locked_out": 1}


def test_the_right_password_clears_earlier_failures() -> None:
    for _ in range(3):
        for _ in range(lockout.MAX_FAILURES - 1):
            gets_in("wrong")
        assert gets_in(PASSWORD)


def test_an_address_that_tries_many_names_is_locked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockout, "MAX_FAILURES_OF_ADDRESS", 6)
    for number in range(6):
        assert not gets_in("wrong", name=f"user{number}")
    assert not gets_in(PASSWORD)
    assert actions().count("session.login_failed") == 6


def test_without_redis_operators_get_in(settings: object) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"  # type: ignore[attr-defined]
    assert not gets_in("wrong")
    assert gets_in(PASSWORD)
