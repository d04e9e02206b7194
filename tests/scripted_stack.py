"""A gateway of its own process in front of an engine that says, token for token, what a test wants said."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from threading import Thread
from typing import Any

from redis.asyncio import Redis

from http_service import Service
from octavo_stack import Stack
from stand_ins.scripted_engine import ScriptedEngine
from stand_ins.tiny_text import description_of_files
from text.model_text import ModelText


class ScriptedStack:
    """The engine answers from a thread, with the real model's tokenizer and chat template."""

    def __init__(self, home: Path, redis_binary: Path, model_dir: Path) -> None:
        described = description_of_files(model_dir)
        self.stack = Stack(home, redis_binary, model_dir, model=described.model)
        self.text = ModelText.from_description(described)
        self.engine = ScriptedEngine(home, described=described, step_s=0.002, tokens_per_step=4)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self.stack.prepare()
        self._thread.start()
        self._run(self._start_engine())
        self.stack.start_gateway()
        self.stack.wait_ready()
        self.service = Service(self.stack.base_url, self.stack.keys["alice"], self.stack.model)

    def stop(self) -> None:
        self.stack.stop()
        if self._thread.is_alive():
            self._run(self.engine.stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def say(self, token_ids: list[int], tokens_per_step: int = 4) -> None:
        """In every answer from now on: these tokens, then the end."""
        self.engine.echoes = False
        self.engine.script, self.engine.tokens_per_step = token_ids, tokens_per_step
        self.engine.end_after = len(token_ids)

    def say_prompts(self) -> None:
        """In every answer from now on: its own prompt, then the end."""
        self.engine.echoes, self.engine.tokens_per_step = True, 4

    def ids_of(self, text: str) -> list[int]:
        return asyncio.run(self.text.encode(text))

    async def _start_engine(self) -> None:
        await self.engine.start()
        await self.engine.publish(Redis.from_url(self.stack.redis.url))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
