"""Waiting for children: news from the engine's log, and giving up on a child that keeps dying."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from operations.child_process import ChildProcess
from operations.children import ChildSpec
from operations.readiness import EngineNews, StartFailed, describe, http_status, wait_ready
from servers_of_tests import free_port


async def never() -> bool:
    return False


async def test_a_child_that_keeps_dying_ends_the_wait_with_its_last_words(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('out of paper')")
    child = ChildProcess(ChildSpec("printer", command), dict(os.environ), tmp_path, lambda name, status: None)
    child.start()
    with pytest.raises(StartFailed, match=r"printer does not stay up[\s\S]*out of paper"):
        await wait_ready("Printer", never, child)
    await child.stop()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"event": "stage", "stage": "warming", "done": 3, "total": 80}', "warming 3 of 80"),
        ('{"event": "kernel_missing", "level": "warning"}', "kernel missing"),
        ("Traceback (most recent call last):", ""),
        ("[1, 2]", ""),
    ],
)
def test_a_log_line_becomes_a_few_words(line: str, text: str) -> None:
    assert describe(line) == text


def test_news_of_an_earlier_run_is_no_news(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text('{"event": "stopped"}\n')
    news = EngineNews(log)
    assert news.latest() == "starting"
    with log.open("a") as file:
        file.write('{"event": "stage", "stage": "loading"}\n')
    assert news.latest() == "loading"


async def test_status_of_an_http_answer_and_of_silence() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    port = free_port()
    assert await http_status("127.0.0.1", port, "/ready") is None
    async with await asyncio.start_server(answer, "127.0.0.1", port):
        assert await http_status("127.0.0.1", port, "/ready") == 503
