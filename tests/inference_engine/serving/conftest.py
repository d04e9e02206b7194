"""A fake engine's command line, and a client of the run's Redis."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from stand_ins.tiny_model import tiny_model_dir


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    return ["--fake", "--model-dir", str(tiny_model_dir(tmp_path / "tiny")), "--fake-step-ms", "5"]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/e.sock"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_url)
    yield client
    await client.aclose()
