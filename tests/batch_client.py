"""A client's view of files and batches, and what the ledger and the workers' logs say of them."""

import json
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing
from typing import Any

import openai
from openai.types import Batch

from octavo_stack import Stack

ENDED = ("completed", "failed", "expired", "cancelled")
CEILING_S = 90.0
_TAKEN = re.compile(r"Task bulk\.run_chunk\[([0-9a-f-]+)\] received")


def chat_line(custom_id: str, model: str, *, text: str = "Say hello.", **fields: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def as_jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


class BatchClient:
    def __init__(self, stack: Stack, tenant: str = "alice") -> None:
        self.stack, self.model = stack, stack.model
        self.api = openai.OpenAI(base_url=f"{stack.base_url}/v1", api_key=stack.keys[tenant], max_retries=5)

    def start(self, lines: list[dict[str, Any]], **fields: Any) -> Batch:
        return self.start_file(as_jsonl(lines), **fields)

    def start_file(self, content: bytes, **fields: Any) -> Batch:
        file = self.api.files.create(file=("lines.jsonl", content), purpose="batch")
        made = {"endpoint": "/v1/chat/completions", "completion_window": "24h", **fields}
        return self.api.batches.create(input_file_id=file.id, **made)

    def until(self, batch: Batch, is_so: Any, ceiling_s: float = CEILING_S) -> Batch:
        give_up_at = time.monotonic() + ceiling_s
        while not is_so(batch):
            assert time.monotonic() < give_up_at, batch
            time.sleep(0.1)
            batch = self.api.batches.retrieve(batch.id)
        return batch

    def ended(self, batch: Batch, ceiling_s: float = CEILING_S) -> Batch:
        return self.until(batch, lambda seen: seen.status in ENDED, ceiling_s)

    def begun(self, batch: Batch, num_done: int = 1) -> Batch:
        """Some of it is done, and not all."""

        def has_begun(seen: Batch) -> bool:
            assert seen.status not in ENDED
            return seen.request_counts is not None and seen.request_counts.completed >= num_done

        return self.until(batch, has_begun)

    def results(self, file_id: str | None) -> list[dict[str, Any]]:
        if file_id is None:
            return []
        return [json.loads(line) for line in self.api.files.content(file_id).text.splitlines()]

    def billed(self, batch: Batch) -> tuple[int, int]:
        """Prompt and output tokens that the ledger has for it."""
        name = f"req_{batch.id.removeprefix('batch_')}_%"
        query = """SELECT COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(output_tokens), 0)
            FROM usage_ledgerentry WHERE request_id LIKE ?"""
        with closing(sqlite3.connect(self.stack.home / "db.sqlite3", timeout=20)) as database:
            return tuple(database.execute(query, [name]).fetchone())

    def tasks_taken_twice(self) -> list[str]:
        """Ids of chunk tasks that the broker delivered more than once."""
        logs = [path.read_text() for path in self.stack.home.glob("worker*.log")]
        taken = Counter(name for log in logs for name in _TAKEN.findall(log))
        return [name for name, count in taken.items() if count > 1]
