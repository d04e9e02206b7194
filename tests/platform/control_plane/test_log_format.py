"""Logs are JSON, one object a line, and hold no secret, whoever writes them."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from django.test import Client

from control_plane.log_format import logging_config

KEY = "octavo_abc123_" + "f" * 64


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What the configured handler would print."""
    config = logging_config("DEBUG")
    options = dict(config["formatters"]["json"])
    formatter = options.pop("()")(**options)
    written: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(formatter.format(record))

    handler = Keep()
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel("DEBUG")
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


def test_fields_named_like_secrets_are_hidden(lines: list[str]) -> None:
    structlog.get_logger("t").info(
        "event",
        password="p1",
        authorization="Bearer p2",
        api_key="p3",
        nested={"cookie": "p4"},
        tenant="Acme",
    )
    (line,) = lines
    found = json.loads(line)
    assert found["tenant"] == "Acme" and found["event"] == "event" and found["level"] == "info"
    assert not any(secret in line for secret in ("p1", "p2", "p3", "p4"))


def test_a_key_is_hidden_wherever_it_appears(lines: list[str]) -> None:
    structlog.get_logger("t").warning(f"got {KEY}", error=f"bad {KEY}!", many=[KEY, {"a": KEY}])
    logging.getLogger("library").error("request with %s failed", KEY)
    try:
        raise ValueError(f"no {KEY}")
    except ValueError:
        logging.getLogger("library").exception("oops")
    assert len(lines) == 3
    for line in lines:
        assert "f" * 64 not in line and "octavo_abc123_[hidden]" in line
        json.loads(line)


def test_a_password_in_a_url_is_hidden(lines: list[str]) -> None:
    structlog.get_logger("t").info("connecting", url="postgresql://u:hush@h/db")
    (line,) = lines
    assert "hush" not in line and "h/db" in line


def test_a_forged_host_is_one_line_without_a_traceback(lines: list[str]) -> None:
    assert Client().get("/admin/", HTTP_HOST="evil.example").status_code == 400
    (said,) = [each for each in map(json.loads, lines) if each["logger"].startswith("django.security")]
    assert "evil.example" in said["event"] and "exception" not in said


def test_a_fault_of_ours_keeps_its_traceback(lines: list[str]) -> None:
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logging.getLogger("django.request").exception("broke")
    assert "RuntimeError: ours" in json.loads(lines[-1])["exception"]
