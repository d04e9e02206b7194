"""A client's view of a running Octavo, and, where the test started it, a look behind the door."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import redis

from inference_engine.contract.events import Stats
from octavo_stack import Stack
from servers_of_tests import wait_until

SETTLED_CEILING_S = 60.0


@dataclass
class Stream:
    """All events of one answer."""

    response: httpx.Response
    events: list[dict[str, Any]] = field(default_factory=list)
    is_done: bool = False
    comments: list[str] = field(default_factory=list)

    @property
    def error(self) -> dict[str, Any] | None:
        return next((event["error"] for event in self.events if "error" in event), None)

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [event for event in self.events if "error" not in event]

    def deltas(self, index: int = 0) -> list[str]:
        """Pieces of content, empty ones left out."""
        choices = [choice for chunk in self.chunks for choice in chunk["choices"] if choice["index"] == index]
        texts = [
            choice["delta"].get("content") if "delta" in choice else choice["text"] for choice in choices
        ]
        return [text for text in texts if text]

    def text(self, index: int = 0) -> str:
        return "".join(self.deltas(index))

    def finish_reasons(self) -> list[str]:
        choices = [choice for chunk in self.chunks for choice in chunk["choices"]]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]

    @property
    def usage(self) -> dict[str, Any]:
        return next(chunk["usage"] for chunk in self.chunks if chunk.get("usage"))


class Service:
    def __init__(self, base_url: str, key: str, model: str, stack: Stack | None = None) -> None:
        self.base_url, self.key, self.model, self.stack = base_url, key, model, stack
        self.http = httpx.Client(base_url=base_url, timeout=120, verify=base_url.startswith("https"))

    @classmethod
    def of(cls, stack: Stack) -> "Service":
        return cls(stack.base_url, stack.keys["alice"], stack.model, stack)

    def close(self) -> None:
        self.http.close()

    def headers(self, **more: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}", "content-type": "application/json", **more}

    # requests

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """`body` is JSON, or the very bytes to send."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.post(path, content=content, headers=self.headers(**headers))

    def chat_body(self, text: str = "Say hello.", **fields: Any) -> dict[str, Any]:
        return {"model": self.model, "messages": [{"role": "user", "content": text}], **fields}

    def completion_body(self, prompt: Any = "Once upon a time", **fields: Any) -> dict[str, Any]:
        return {"model": self.model, "prompt": prompt, **fields}

    def chat(self, text: str = "Say hello.", **fields: Any) -> dict[str, Any]:
        return self.answer("/v1/chat/completions", self.chat_body(text, **fields))

    def complete(self, prompt: Any = "Once upon a time", **fields: Any) -> dict[str, Any]:
        return self.answer("/v1/completions", self.completion_body(prompt, **fields))

    def answer(self, path: str, body: Any) -> dict[str, Any]:
        response = self.post(path, body)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def refusal(self, path: str, body: Any, status: int = 400) -> dict[str, Any]:
        """The error object of a refusal, whose shape is checked."""
        response = self.post(path, body)
        assert response.status_code == status, response.text
        return checked_error(response)

    def stream_chat(self, text: str = "Say hello.", **fields: Any) -> Stream:
        return self.stream("/v1/chat/completions", self.chat_body(text, stream=True, **fields))

    def stream_completion(self, prompt: Any = "Once upon a time", **fields: Any) -> Stream:
        return self.stream("/v1/completions", self.completion_body(prompt, stream=True, **fields))

    def stream(self, path: str, body: Any, **headers: str) -> Stream:
        with self.opened(path, body, **headers) as (stream, events):
            for _ in events:
                pass
        return stream

    @contextmanager
    def opened(
        self, path: str, body: Any, **headers: str
    ) -> Iterator[tuple[Stream, Iterator[dict[str, Any]]]]:
        """A stream to be read event by event; leaving closes the connection."""
        content = json.dumps(body).encode()
        asked = self.http.stream("POST", path, content=content, headers=self.headers(**headers))
        with asked as response:
            if response.status_code != 200:
                response.read()
                raise AssertionError(response.text)
            stream = Stream(response)
            yield stream, _events(stream)

    # behind the door

    def check_health(self) -> None:
        """What must hold after every case."""
        wait_until(self.answers_within_a_second, "/health within a second", SETTLED_CEILING_S)
        answer = self.complete("Hello", max_tokens=5, ignore_eos=True)
        assert answer["usage"]["completion_tokens"] == 5
        if self.stack is not None:
            wait_until(self.is_idle, "everything given back", SETTLED_CEILING_S)

    def answers_within_a_second(self) -> bool:
        """Asked again where it doesn't: the whole machine may have stood still."""
        started = time.monotonic()
        assert self.http.get("/health").status_code == 200
        return time.monotonic() - started < 1.0

    def is_idle(self) -> bool:
        """Leases first: of what is settled the engine has said its last word."""
        assert self.stack is not None
        return not self.num_leases() and _has_nothing_to_do(self.stack.figures_of("engine"))

    def engine_stats(self) -> Stats:
        """At this moment."""
        assert self.stack is not None
        stats = self.stack.figures_of("engine")
        assert stats is not None, "no engine"
        return stats

    def settled_stats(self) -> Stats:
        """With nothing under way."""
        wait_until(self.is_idle, "nothing under way", SETTLED_CEILING_S)
        return self.engine_stats()

    def num_leases(self) -> int:
        """Requests in flight, of all tenants."""
        with closing(self._redis()) as client:
            keys = list(client.scan_iter("octavo:{b:*}:leases:tenant:*"))
            return sum(client.zcard(key) for key in keys)

    def ledger_row(self, request_id: str) -> dict[str, Any]:
        """Waits for it; asserts that there is one only."""
        rows: list[dict[str, Any]] = []

        def has_come() -> bool:
            rows[:] = self.ledger_rows(request_id)
            return bool(rows)

        wait_until(has_come, f"ledger row of {request_id}", SETTLED_CEILING_S)
        assert len(rows) == 1
        return rows[0]

    def ledger_rows(self, request_id: str) -> list[dict[str, Any]]:
        assert self.stack is not None
        with closing(sqlite3.connect(self.stack.home / "db.sqlite3", timeout=20)) as database:
            database.row_factory = sqlite3.Row
            query = "SELECT * FROM usage_ledgerentry WHERE request_id = ?"
            return [dict(row) for row in database.execute(query, [request_id])]

    def _redis(self) -> "redis.Redis":
        assert self.stack is not None
        return redis.Redis.from_url(self.stack.redis.url)


def _has_nothing_to_do(stats: Stats | None) -> bool:
    """All blocks were given back, too."""
    if stats is None:
        return False
    is_quiet = stats.num_waiting == stats.num_running == 0
    return is_quiet and stats.blocks_free + stats.blocks_cached == stats.blocks_total


def _events(stream: Stream) -> Iterator[dict[str, Any]]:
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    name = None
    for line in stream.response.iter_lines():
        if line.startswith(":"):
            stream.comments.append(line)
        elif line == "data: [DONE]":
            stream.is_done = True
        elif line.startswith("data: "):
            assert not stream.is_done, "an event after [DONE]"
            stream.events.append(json.loads(line[6:]))
            assert name is None or name == stream.events[-1]["type"]
            yield stream.events[-1]
        elif line.startswith("event: "):
            name = line[7:]
        else:
            assert line == "", line


def checked_error(response: httpx.Response) -> dict[str, Any]:
    """Every refusal has OpenAI's shape and tells whether to try again."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    assert response.headers["x-should-retry"] in ("true", "false")
    body = response.json()
    assert set(body) == {"error"}
    error = dict(body["error"])
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str) and error["message"]
    assert "Traceback" not in error["message"]
    return error
