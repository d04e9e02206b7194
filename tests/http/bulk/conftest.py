"""An Octavo with a worker for bulk jobs: short leases, a broker that redelivers after five seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batch_client import BatchClient
from octavo_stack import Stack
from servers_of_tests import RedisServer

FAKE_ENGINE = ("--fake", "--fake-step-ms", "10", "--num-blocks", "4096", "--max-running", "64")


@pytest.fixture(scope="session")
def bulk_stack(redis_binary: Path, smollm2_dir: Path) -> Iterator[Stack]:
    with Stack.opened(redis_binary, smollm2_dir) as stack:
        stack.redis = RedisServer(redis_binary, stack.home, durable=True)
        stack.environment |= {
            "OCTAVO_BULK_LEASE_SECONDS": "2",
            "OCTAVO_BROKER_VISIBILITY_SECONDS": "5",
            "OCTAVO_FILE_BYTES_PER_TENANT": str(10**9),
            "OCTAVO_LOG_LEVEL": "info",
        }
        stack.prepare()
        stack.start_engine(*FAKE_ENGINE)
        stack.start_ledger_writer()
        stack.start_gateway()
        stack.start_bulk()
        stack.wait_ready()
        yield stack


@pytest.fixture
def alice(bulk_stack: Stack) -> Iterator[BatchClient]:
    client = BatchClient(bulk_stack, "alice")
    yield client
    client.api.close()


@pytest.fixture
def bob(bulk_stack: Stack) -> Iterator[BatchClient]:
    """Somebody else."""
    client = BatchClient(bulk_stack, "bob")
    yield client
    client.api.close()


@pytest.fixture
def charlie(bulk_stack: Stack) -> Iterator[BatchClient]:
    """Has no files but those of one test."""
    client = BatchClient(bulk_stack, "charlie")
    yield client
    client.api.close()
