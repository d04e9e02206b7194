"""Keeps a set of child processes alive: the one place that starts, restarts and stops them."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from operations.child_process import ChildProcess
from operations.children import ChildSpec
from operations.log_files import rotate

ROTATE_EVERY_S = 10.0


class Supervisor:
    """Children are stopped in the reverse of the order in which they were added."""

    def __init__(
        self, environment: Mapping[str, str], logs: Path, on_death: Callable[[str, int], None]
    ) -> None:
        self.children: dict[str, ChildProcess] = {}
        self._environment = environment
        self._logs = logs
        self._on_death = on_death
        self._rotation = asyncio.create_task(self._rotate_logs())

    def add(self, spec: ChildSpec) -> ChildProcess:
        child = ChildProcess(spec, self._environment, self._logs, self._on_death)
        self.children[spec.name] = child
        child.start()
        return child

    async def stop(self) -> None:
        self._rotation.cancel()
        for child in reversed(self.children.values()):
            await child.stop()

    def kill(self) -> None:
        """For a second Ctrl-C: nobody is waited for any longer."""
        for child in self.children.values():
            child.kill()

    async def _rotate_logs(self) -> None:
        while True:
            await asyncio.sleep(ROTATE_EVERY_S)
            for path in self._logs.glob("*.log"):
                rotate(path)
