"""One real answer over real HTTP, streamed to the terminal: what a newcomer sees first.

python -m operations.first_answer http://127.0.0.1:8000 MODEL < KEY
"""

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

PROMPT = "Explain in two sentences why the sky is blue."
MAX_TOKENS = 80
MAX_ATTEMPTS = 3
PAUSE_S = 1.0


class Unavailable(OSError):
    """HTTP 503."""


def stream_answer(base_url: str, model: str, key: str) -> Iterator[str]:
    """Pieces of text as they arrive. Raises OSError or http.client.HTTPException."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": True,
    }
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    if response.status != 200:
        failure = Unavailable if response.status == 503 else OSError
        raise failure(f"HTTP {response.status}: {response.read(500).decode('utf-8', 'replace')}")
    for line in response:
        yield from pieces_of(line)
    connection.close()


def pieces_of(line: bytes) -> Iterator[str]:
    """The text in one line of a server-sent event stream."""
    data = line.removeprefix(b"data:").strip()
    if not line.startswith(b"data:") or data == b"[DONE]":
        return
    event = json.loads(data)
    if "error" in event:
        raise OSError(event["error"]["message"])
    for choice in event["choices"]:
        if choice["delta"].get("content"):
            yield choice["delta"]["content"]


def patient_answer(ask: Callable[[], Iterator[str]], pause: Callable[[float], None]) -> Iterator[str]:
    """Ask again, at most twice, where nothing can serve at this moment and no text has come yet."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            yield from ask()
            return
        except Unavailable:
            pause(PAUSE_S)
    yield from ask()


def main() -> int:
    base_url, model = sys.argv[1:]
    key = sys.stdin.readline().strip()
    print(f"\n  > {PROMPT}\n  ", end="", flush=True)
    asked = time.monotonic()
    first_after = None
    try:
        for piece in patient_answer(lambda: stream_answer(base_url, model, key), time.sleep):
            first_after = first_after or time.monotonic() - asked
            print(piece.replace("\n", "\n  "), end="", flush=True)
    except (OSError, http.client.HTTPException) as problem:
        print(f"\n  The first answer failed: {problem}", flush=True)
        return 1
    took = time.monotonic() - asked
    times = f"first token after {1000 * (first_after or took):.0f} ms, all of it after {took:.1f} s"
    print(f"\n\n  {times}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
