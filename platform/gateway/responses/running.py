"""The responses that this process is making, to be found by their ids."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.runs.event_answer import EventOutput
from inference_engine.contract.codes import Code


class Making:
    """One response, from before the gate until it has been kept."""

    def __init__(self, tenant_id: str, response_id: str, output: EventOutput) -> None:
        self.tenant_id = tenant_id
        self.response_id = response_id
        self.is_cancelled = False
        self.ended = asyncio.Event()
        self._output = output
        self._task = asyncio.current_task()

    def cancel(self) -> None:
        """By its client. The engine is told at once, wherever the response is on its way."""
        self.is_cancelled = True
        if not self.end(Code.CLIENT_GONE) and self._task is not None:
            self._task.cancel()

    def end(self, code: Code) -> bool:
        """Whether there was something on an engine to end."""
        run = self._output.run
        if run is not None:
            run.end(code)
        return run is not None


class RunningResponses:
    def __init__(self) -> None:
        self._making: dict[str, Making] = {}

    def find(self, tenant_id: str, response_id: str) -> Making | None:
        """None also for another tenant's."""
        making = self._making.get(response_id)
        return making if making is not None and making.tenant_id == tenant_id else None

    @contextmanager
    def listed(self, making: Making) -> Iterator[None]:
        self._making[making.response_id] = making
        try:
            yield
        finally:
            del self._making[making.response_id]
            making.ended.set()
