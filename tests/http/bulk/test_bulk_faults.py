"""Cases 33 and 34, and an engine that dies: each line of a batch is answered once and billed once."""

import signal

from openai.types import Batch

from batch_client import BatchClient, chat_line
from servers_of_tests import wait_until

NUM_LINES = 300
NUM_TOKENS = 150
"""Five rounds of 64 places, a second and a half each."""


def started(client: BatchClient) -> Batch:
    lines = [
        chat_line(str(n), client.model, max_tokens=NUM_TOKENS, ignore_eos=True) for n in range(NUM_LINES)
    ]
    return client.begun(client.start(lines), NUM_LINES // 8)


def check_each_line_once(client: BatchClient, batch: Batch) -> None:
    batch = client.ended(batch)
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": NUM_LINES, "completed": NUM_LINES, "failed": 0}
    results = client.results(batch.output_file_id)
    assert [int(result["custom_id"]) for result in results] == list(range(NUM_LINES))
    usages = [result["response"]["body"]["usage"] for result in results]
    spent = (sum(usage["prompt_tokens"] for usage in usages), NUM_LINES * NUM_TOKENS)
    assert batch.usage is not None
    assert (batch.usage.input_tokens, batch.usage.output_tokens) == spent
    wait_until(lambda: client.billed(batch) >= spent, f"{spent} in the ledger", 60)
    assert client.billed(batch) == spent


def test_a_worker_killed_half_way_loses_and_repeats_nothing(alice: BatchClient) -> None:
    """Case 33: the broker redelivers what the dead one had, and more than once."""
    batch = started(alice)
    alice.stack.kill_bulk("worker")
    check_each_line_once(alice, batch)
    wait_until(lambda: bool(alice.tasks_taken_twice()), "a task was delivered again", 60)


def test_a_batch_goes_on_when_redis_is_back(alice: BatchClient) -> None:
    """Case 34."""
    batch = started(alice)
    alice.stack.redis.restart()
    check_each_line_once(alice, batch)


def test_a_batch_goes_on_when_the_engine_is_back(alice: BatchClient) -> None:
    batch = started(alice)
    alice.stack.signal("engine", signal.SIGKILL)
    alice.stack.start_engine("--fake", "--fake-step-ms", "10", "--num-blocks", "4096", "--max-running", "64")
    check_each_line_once(alice, batch)
