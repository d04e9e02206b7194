"""Structured JSON logs, one object a line, that never hold a secret."""

import re
from collections.abc import MutableMapping
from typing import Any

import structlog

Event = MutableMapping[str, Any]

HIDDEN = "[hidden]"
HIDDEN_FIELDS = re.compile(
    r"authorization|password|passwd|secret|cookie|digest|credential|api[_-]?key$|bearer", re.IGNORECASE
)
API_KEY = re.compile(r"octavo_([0-9a-z]{1,32})_[0-9A-Za-z_\-]+")
URL_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*):[^@/\s]+@")


def hide_secrets(_logger: object, _method: str, event: Event) -> Event:
    """Hides fields named like secrets, and whatever looks like an API key or a password in a URL."""
    for name, value in event.items():
        if name.startswith("_"):
            continue  # structlog's own bookkeeping, removed before rendering
        event[name] = HIDDEN if HIDDEN_FIELDS.search(name) else _clean(value)
    return event


def _clean(value: object) -> object:
    if isinstance(value, str):
        return URL_PASSWORD.sub(r"\1:" + HIDDEN + "@", API_KEY.sub(r"octavo_\1_" + HIDDEN, value))
    if isinstance(value, dict):
        return {
            key: HIDDEN if HIDDEN_FIELDS.search(str(key)) else _clean(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, int | float | None):
        return value
    return _clean(str(value))


def refusal_in_one_line(_logger: object, _method: str, event: Event) -> Event:
    """What Django refuses as suspicious, a forged Host above all, is a client's doing, no fault of ours."""
    if str(event.get("logger", "")).startswith("django.security."):
        event.pop("exc_info", None)
    return event


def _shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        refusal_in_one_line,
        structlog.processors.format_exc_info,
    ]


def configure_structlog() -> None:
    structlog.configure(
        processors=[*_shared_processors(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(level: str) -> dict[str, Any]:
    """For LOGGING: everything, the libraries' records included, passes the same processors."""
    json_formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _shared_processors(),
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            hide_secrets,
            structlog.processors.JSONRenderer(),
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": json_formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
        },
    }
