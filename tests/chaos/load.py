"""Clients of every tenant on both gateways, which go on through every fault and remember what they got."""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field

import aiohttp

PAUSE_S = 0.05
LATE_S = 30.0


@dataclass
class Answer:
    """What one client saw of one request."""

    tenant: str
    sent_at: float
    status: int = 0
    """0: no answer at all."""
    request_id: str = ""
    num_tokens: int = 0
    is_whole: bool = False
    code: str = ""


@dataclass
class Load:
    urls: list[str]
    keys: dict[str, str]
    model: str
    seed: int = 0
    workers_each: int = 4
    answers: list[Answer] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        """Until `is_over`; then what is under way is finished."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=LATE_S, sock_connect=LATE_S)
        connector = aiohttp.TCPConnector(limit=0, force_close=True)  # none of a dead gateway
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            workers = [
                self._work(session, tenant, random.Random(f"{self.seed} {tenant} {number}"))
                for tenant in self.keys
                for number in range(self.workers_each)
            ]
            await asyncio.gather(*workers)

    async def _work(self, session: aiohttp.ClientSession, tenant: str, draw: random.Random) -> None:
        while not self.is_over:
            answer = Answer(tenant, time.monotonic())
            self.answers.append(answer)
            try:
                await self._ask(session, answer, draw)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                answer.code = answer.code or type(error).__name__
            if answer.status != 200:
                await asyncio.sleep(PAUSE_S)

    async def _ask(self, session: aiohttp.ClientSession, answer: Answer, draw: random.Random) -> None:
        body = {
            "model": self.model,
            "prompt": [draw.randrange(1000, 40_000) for _ in range(draw.randint(4, 40))],
            "max_tokens": draw.randint(5, 60),
            "seed": draw.randrange(10**6),
            "ignore_eos": True,
            "return_token_ids": True,
            "stream": True,
        }
        leaves_after = draw.choice((None, None, None, 3))
        headers = {"authorization": f"Bearer {self.keys[answer.tenant]}"}
        url = f"{draw.choice(self.urls)}/v1/completions"
        async with session.post(url, json=body, headers=headers) as response:
            answer.status = response.status
            answer.request_id = response.headers.get("x-request-id", "")
            if response.status != 200:
                answer.code = str(json.loads(await response.text())["error"]["code"])
                return
            async for line in response.content:
                self._note(answer, line.strip())
                if leaves_after is not None and answer.num_tokens >= leaves_after:
                    response.close()
                    return

    def _note(self, answer: Answer, line: bytes) -> None:
        if line == b"data: [DONE]":
            answer.is_whole = True
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            if "error" in event:
                answer.code = str(event["error"]["code"])
            for choice in event.get("choices", []):
                answer.num_tokens += len(choice.get("token_ids") or [])
