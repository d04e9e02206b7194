"""Strict readers of the environment. `X_FILE` names a file that holds X, for secrets; both is an error."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


class Environment:
    """Reads settings from a mapping; every value that can't be read is named in the error, never shown."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = os.environ if values is None else values

    def text(self, *names: str) -> str | None:
        """The first of `names` that is set, directly or through its _FILE; empty counts as not set."""
        for name in names:
            direct = self._values.get(name) or None
            path = self._values.get(f"{name}_FILE") or None
            if direct and path:
                raise ImproperlyConfigured(f"{name} and {name}_FILE are both set")
            if direct or path:
                return direct if path is None else _file_content(f"{name}_FILE", path)
        return None

    def integer(self, name: str, default: int, *, minimum: int, maximum: int = 2**31 - 1) -> int:
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be a whole number") from None
        if not minimum <= value <= maximum:
            raise ImproperlyConfigured(f"{name} must be from {minimum} to {maximum}")
        return value

    def number(self, name: str, default: float, *, minimum: float, maximum: float) -> float:
        text = self.text(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be a number") from None
        if not minimum <= value <= maximum:
            raise ImproperlyConfigured(f"{name} must be from {minimum} to {maximum}")
        return value

    def words(self, name: str, default: list[str]) -> list[str]:
        """A comma-separated list."""
        text = self.text(name)
        return default if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _file_content(name: str, path: str) -> str:
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name} can't be read: {error.strerror}") from None
    if not content:
        raise ImproperlyConfigured(f"{name} names an empty file")
    return content


def sqlite_database(path: Path) -> dict[str, object]:
    """IMMEDIATE takes the write lock at BEGIN: read-then-write waits instead of failing as locked."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def database(url: str | None, default_path: Path) -> dict[str, object]:
    """`postgresql://user:password@host:port/name?sslmode=.`, `sqlite:///path`, or SQLite at default_path."""
    if url is None:
        return sqlite_database(default_path)
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite_database(Path(unquote(parts.path)))
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must start with postgresql:// or sqlite://")
    query = dict(parse_qsl(parts.query))
    host = query.pop("host", "") or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(query.pop("port", "") or parts.port or ""),
        "OPTIONS": {
            "connect_timeout": 5,
            "pool": {"min_size": 0, "max_size": 8, "timeout": 5},
            **query,
        },
    }
