"""`make up`: everything of one installation, in the foreground, under one supervisor.

PYTHONPATH=.:platform python -m operations.up
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from operations import children, greeting
from operations.bulk_watch import BulkWatch
from operations.child_process import ChildProcess, start_process, to_its_end
from operations.children import ChildSpec
from operations.doctor import port_is_free
from operations.engine_watch import EngineWatch
from operations.home import Home, HomeInUse, home_from, process_environment
from operations.readiness import EngineNews, StartFailed, death_notice, http_status, wait_ready
from operations.redis_server import find_redis_server
from operations.supervisor import Supervisor
from operations.terminal import say, stage


class Installation:
    """One home, one address, and the processes that serve it."""

    def __init__(self, home: Home, environment: dict[str, str]) -> None:
        self.home = home
        self.environment = process_environment(home, environment)
        self.owns_redis = not (environment.get("OCTAVO_REDIS_URL") or environment.get("REDIS_URL"))
        self.host = environment.get("OCTAVO_HOST") or "127.0.0.1"
        self.port = int(environment.get("OCTAVO_PORT") or 8000)
        self.is_settled = False
        self.supervisor = Supervisor(self.environment, home.logs, self.report_death)

    @property
    def local_host(self) -> str:
        """Where we ourselves reach the gateway."""
        return "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104

    @property
    def url(self) -> str:
        host = f"[{self.local_host}]" if ":" in self.local_host else self.local_host
        return f"http://{host}:{self.port}"

    def report_death(self, name: str, status: int) -> None:
        if self.is_settled:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            say(f"  {name} ended ({how}) and is started again; see {self.home.logs / f'{name}.log'}")

    async def serve(self) -> None:
        """Returns never; cancelled when the installation is to stop. Raises StartFailed."""
        redis = Redis.from_url(self.environment["OCTAVO_REDIS_URL"], socket_timeout=2)
        await self.start_redis(redis)
        news = EngineNews(self.home.logs / "engine.log")
        engine = self.supervisor.add(children.engine_child(self.home))
        watch = EngineWatch(redis, engine)
        watching = asyncio.create_task(watch.run())
        with stage("Database"):
            is_new = bool((await self.run_step(children.database_step()))["is_new"])
        self.supervisor.add(children.ledger_child())
        gateway = self.supervisor.add(children.gateway_child(self.host, self.port))
        await self.until_ready(engine, watch, gateway, news)
        self.is_settled = True
        bulk_watch = self.start_bulk(redis)
        await self.greet(watch, is_new)
        await asyncio.gather(watching, bulk_watch.run())

    async def start_redis(self, redis: Redis) -> None:
        if not self.owns_redis:
            return
        server = find_redis_server()
        if server is None:
            raise StartFailed("no redis-server is here; `make doctor` says which package brings one")
        child = self.supervisor.add(children.redis_child(server, self.home))
        await wait_ready("Redis", lambda: answers(redis), child)

    def start_bulk(self, redis: Redis) -> BulkWatch:
        """Last: nobody's first answer waits for it."""
        worker = self.supervisor.add(children.worker_child(self.environment))
        beat = self.supervisor.add(children.beat_child())
        url = self.environment.get("OCTAVO_BROKER_URL")
        return BulkWatch(redis, Redis.from_url(url, socket_timeout=2) if url else redis, worker, beat)

    async def until_ready(
        self, engine: ChildProcess, watch: EngineWatch, gateway: ChildProcess, news: EngineNews
    ) -> None:
        async def engine_is_ready() -> bool:
            return watch.is_ready

        async def gateway_is_ready() -> bool:
            return await http_status(self.local_host, self.port, "/ready") == 200

        await wait_ready("Engine", engine_is_ready, engine, news.latest)
        await wait_ready("Gateway", gateway_is_ready, gateway)

    async def run_step(self, step: ChildSpec) -> dict[str, Any]:
        """What a process that runs to its end prints, as JSON. Raises StartFailed."""
        log = self.home.logs / f"{step.name}.log"
        process = await start_process(step, self.environment, log, stdout=asyncio.subprocess.PIPE)
        output = await to_its_end(process)
        if process.returncode:
            raise StartFailed(death_notice(step.name, log))
        printed: dict[str, Any] = json.loads(output)
        return printed

    async def greet(self, watch: EngineWatch, is_new: bool) -> None:
        model = watch.record.model if watch.record else ""
        if is_new:
            made = await self.run_step(children.first_run_step())
            say("\n" + greeting.made_at_first_start(made))
            await self.first_answer(model, made["key"])
            say("\n" + greeting.first_start(self.url, model, made["key"]))
        else:
            say("\n" + greeting.later_start(self.url, model))
        say(f"Everything runs; logs are in {self.home.logs}. Ctrl-C stops it.")

    async def first_answer(self, model: str, key: str) -> None:
        """In a process of its own, which gets the key through a pipe and never in its arguments."""
        process = await start_process(
            children.first_answer_step(self.url, model),
            self.environment,
            self.home.logs / "first-answer.log",
            stdin=asyncio.subprocess.PIPE,
            stdout=sys.stdout.fileno(),
        )
        await to_its_end(process, f"{key}\n".encode())


async def answers(redis: Redis) -> bool:
    try:
        return bool(await redis.ping())
    except (RedisError, OSError):
        return False


async def run_until_signalled(installation: Installation) -> int:
    serving = asyncio.create_task(installation.serve())
    supervisor = installation.supervisor
    loop = asyncio.get_running_loop()
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(which, lambda: supervisor.kill() if serving.done() else serving.cancel())
    status = 0
    try:
        await serving
    except asyncio.CancelledError:
        say("\nStopping (Ctrl-C again: at once) ...")
    except StartFailed as problem:
        say(f"\n{problem}")
        status = 1
    finally:
        await supervisor.stop()
    say("Stopped.")
    return status


async def up() -> int:
    home = home_from(os.environ)
    home.make_folders()
    lock = home.lock()
    try:
        return await run_until_signalled(Installation(home, dict(os.environ)))
    finally:
        os.close(lock)


def complaint(environment: dict[str, str]) -> str | None:
    """What makes it pointless to start at all."""
    text = environment.get("OCTAVO_PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        return f"OCTAVO_PORT is {text!r}, not a port number."
    if not port_is_free(int(text), environment.get("OCTAVO_HOST") or "127.0.0.1"):
        return f"Port {text} is in use. Stop what listens there, or choose another: OCTAVO_PORT=8001 make up"
    model = Path(process_environment(home_from(environment), environment)["OCTAVO_MODEL_DIR"])
    if not (model / "config.json").exists():
        return f"There is no model in {model}; `make setup` puts one there."
    return None


def main() -> int:
    try:
        home = home_from(os.environ)
        if home.path.exists():
            os.close(home.lock())
        problem = complaint(dict(os.environ))
        if problem:
            say(problem)
            return 1
        return asyncio.run(up())
    except (HomeInUse, PermissionError) as problem_of_home:
        say(str(problem_of_home))
        return 1


if __name__ == "__main__":
    sys.exit(main())
