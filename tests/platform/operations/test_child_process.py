"""Supervised processes are started again when they die, and never outlive the supervisor."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from operations.child_process import ChildProcess, start_process, to_its_end
from operations.children import ChildSpec
from operations.supervisor import Supervisor
from servers_of_tests import wait_until
from source_tree import ROOT

SLEEPER = "import time; time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEPER}"
PARENT = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]).pid, flush=True)
{SLEEPER}
"""


def spec(name: str, program: str, **fields: float) -> ChildSpec:
    return ChildSpec(name, (sys.executable, "-c", program), **fields)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(question: Callable[[], object], what: str) -> None:
    try:
        async with asyncio.timeout(30):
            while not question():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


class Deaths(list[tuple[str, int]]):
    def __call__(self, name: str, status: int) -> None:
        self.append((name, status))


def supervised(tmp_path: Path, child: ChildSpec) -> tuple[ChildProcess, Deaths]:
    deaths = Deaths()
    return ChildProcess(child, dict(os.environ), tmp_path, deaths), deaths


async def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    child, deaths = supervised(tmp_path, spec("sleeper", SLEEPER))
    child.start()
    await until(lambda: child.pid, "started")
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.pid not in (None, first), "started again")
    assert deaths == [("sleeper", -signal.SIGKILL)]
    await child.stop()
    assert child.pid is None
    assert child.num_starts == 2


async def test_a_child_that_cannot_start_is_tried_ever_less_often(tmp_path: Path) -> None:
    child, deaths = supervised(tmp_path, spec("broken", "raise SystemExit(3)"))
    child.start()
    await until(lambda: len(deaths) >= 3, "died three times")
    await child.stop()
    assert set(deaths) == {("broken", 3)}
    assert child.num_starts == len(deaths)


async def test_stop_kills_a_child_that_does_not_listen(tmp_path: Path) -> None:
    child, deaths = supervised(tmp_path, spec("deaf", DEAF, stop_ceiling_s=0.3))
    child.start()
    await until(lambda: child.log.exists() and b"deaf" in child.log.read_bytes(), "listening to nothing")
    await child.stop()
    assert child.pid is None
    assert deaths == []


async def test_what_a_dead_child_had_started_goes_with_it(tmp_path: Path) -> None:
    child, _ = supervised(tmp_path, spec("parent", PARENT))
    child.start()
    await until(lambda: child.log.exists() and child.log.read_text().strip(), "grandchild started")
    grandchild = int(child.log.read_text().split()[0])
    assert is_alive(grandchild)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    await until(lambda: not is_alive(grandchild), "grandchild gone")
    await child.stop()


async def test_stopping_while_a_child_is_being_started_leaves_nothing(tmp_path: Path) -> None:
    child, _ = supervised(tmp_path, spec("sleeper", SLEEPER))
    child.start()
    await asyncio.sleep(0)
    await child.stop()
    assert child.pid is None


async def test_children_stop_in_the_reverse_of_their_order(tmp_path: Path) -> None:
    log = tmp_path / "order"
    goodbye = (
        "import signal, sys, time\ndef bye(*_):\n    open({log!r}, 'a').write({name!r} + ' '); sys.exit()\n"
    )
    goodbye += "signal.signal(signal.SIGTERM, bye); print('up', flush=True); time.sleep(600)"
    supervisor = Supervisor(dict(os.environ), tmp_path, Deaths())
    for name in ("one", "two", "three"):
        supervisor.add(spec(name, goodbye.format(log=str(log), name=name)))
    logs = [tmp_path / f"{name}.log" for name in ("one", "two", "three")]
    await until(lambda: all(path.exists() and path.read_text() for path in logs), "all up")
    await supervisor.stop()
    assert log.read_text().split() == ["three", "two", "one"]


async def test_niceness_is_the_child_s_own(tmp_path: Path) -> None:
    child, _ = supervised(
        tmp_path, spec("nice", f"import os; print(os.nice(0), flush=True); {SLEEPER}", nice=7)
    )
    child.start()
    await until(lambda: child.log.exists() and child.log.read_text().strip(), "printed")
    assert int(child.log.read_text()) == os.nice(0) + 7
    await child.stop()


SUPERVISOR = """
import asyncio, json, os, sys
from pathlib import Path
from operations.children import ChildSpec
from operations.supervisor import Supervisor

async def main():
    supervisor = Supervisor(dict(os.environ), Path(sys.argv[1]), lambda name, status: None)
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    children = [supervisor.add(ChildSpec(name, command)) for name in ("a", "b")]
    while None in [child.pid for child in children]:
        await asyncio.sleep(0.02)
    print(json.dumps([child.pid for child in children]), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "platform")}
    command = [sys.executable, "-c", SUPERVISOR, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        assert all(map(is_alive, pids))
        process.kill()
    wait_until(lambda: not any(map(is_alive, pids)), "children are gone")


async def test_a_step_that_is_no_longer_waited_for_is_killed(tmp_path: Path) -> None:
    process = await start_process(spec("step", SLEEPER), dict(os.environ), tmp_path / "step.log")
    waiting = asyncio.create_task(to_its_end(process))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await process.wait() == -signal.SIGKILL


async def test_a_step_s_output_and_input_are_pipes(tmp_path: Path) -> None:
    step = spec("step", "print(input()[::-1])")
    pipe = asyncio.subprocess.PIPE
    process = await start_process(step, dict(os.environ), tmp_path / "step.log", stdin=pipe, stdout=pipe)
    assert await to_its_end(process, b"abc\n") == b"cba\n"
