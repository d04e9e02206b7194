"""A Redis database of this folder's own, and a fleet that finds its engines there."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from fleet.fleet import Fleet
from fleet.session import SessionOptions
from inference_engine.contract.requests import Generate
from inference_engine.contract.sampling import SamplingParams


@pytest.fixture
async def redis(redis_url: str) -> "AsyncIterator[Redis[Any]]":
    client = Redis.from_url(redis_url, db=5)
    await client.flushdb()
    yield client
    await client.flushdb()
    await client.aclose()


@pytest.fixture
async def fleet(redis: "Redis[Any]") -> AsyncIterator[Fleet]:
    fleet = Fleet(redis, poll_interval_s=0.02, session_options=SessionOptions(stall_limit_s=1.0))
    await fleet.start()
    yield fleet
    await fleet.stop()


@pytest.fixture
def generate() -> "GenerateFactory":
    return GenerateFactory()


class GenerateFactory:
    def __call__(self, request_id: str = "r1", max_tokens: int = 5, **changes: Any) -> Generate:
        facts = {
            "request_id": request_id,
            "prompt_ids": [1, 2, 3],
            "sampling": SamplingParams(seed=1, max_tokens=max_tokens),
            "tenant_id": "t1",
        }
        return Generate(**(facts | changes))
