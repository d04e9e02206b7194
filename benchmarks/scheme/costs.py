"""What one step costs against the number of concurrent requests, and against the length of the context."""

import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.chat_work import ChatRequest
from benchmarks.scheme.engine import Engine, greedy
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import ScheduledChunk, StepPlan

LOADS = (1, 2, 4, 8, 16, 32, 64, 128)
CONTEXTS = (128, 512, 1024, 2048, 4096, 8191)
CONTEXT_OF_LOADS = 200
ROWS_OF_CONTEXTS = 4
REPETITIONS = 7


def cost_of_loads(engine: Engine, loads: Sequence[int], on_step: Callable[[], None]) -> dict[int, float]:
    """Concurrent decodes -> milliseconds of a step."""
    return {load: _median_ms(engine, load, CONTEXT_OF_LOADS, on_step) for load in loads}


def cost_of_contexts(
    engine: Engine, contexts: Sequence[int], on_step: Callable[[], None]
) -> dict[int, float]:
    """Positions that each of a few decodes sees -> milliseconds of a step."""
    return {context: _median_ms(engine, ROWS_OF_CONTEXTS, context, on_step) for context in contexts}


def _median_ms(engine: Engine, num_rows: int, context: int, on_step: Callable[[], None]) -> float:
    plan = decode_plan(num_rows, context, engine.runner.num_blocks)
    times = []
    for _ in range(REPETITIONS):
        started_at = time.perf_counter()
        engine.runner.run(plan)
        times.append(time.perf_counter() - started_at)
        on_step()
    return round(1e3 * statistics.median(times[1:]), 2)


def decode_plan(num_rows: int, context: int, num_blocks: int) -> StepPlan:
    """Rows whose blocks are the pool's, in turn: what they hold doesn't matter for what it costs."""
    each = -(-context // BLOCK_SIZE)
    chunks = []
    for row in range(num_rows):
        blocks = [(row * each + index) % num_blocks for index in range(each)]
        generate = greedy(str(row), ChatRequest([1], context))
        request = Request(generate, arrival=row, max_tokens=context, end_ids=frozenset())
        chunks.append(ScheduledChunk(request, context - 1, [7], blocks, True))
    return StepPlan(0, chunks)
