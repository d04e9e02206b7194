"""Where it is about noon now: days and months of tenants there end hours from now, not while a test runs."""

from datetime import UTC, datetime


def where_it_is_noon() -> str:
    """A time zone; west is positive in its name."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"
