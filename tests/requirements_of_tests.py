"""What a test needs from the machine: absent, it is a skip with a reason; in CI the same is a failure."""

import os

import pytest


def require(condition: object, reason: str) -> None:
    """Go on where `condition` holds. `reason` says what is missing."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed in CI: {reason}", pytrace=False)
    pytest.skip(reason)
