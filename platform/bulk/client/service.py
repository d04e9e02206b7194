"""Files and batches of any Octavo, or of whatever else speaks this interface, with nothing but Python."""

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

PIECE_BYTES = 256 * 1024
TIMEOUT_S = 600.0
MAX_TRIES = 5
FIRST_PAUSE_S = 1.0
RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class ServiceError(Exception):
    """What the service, or the way to it, says: its message is for the reader."""


class Service:
    def __init__(self, url: str, key: str) -> None:
        """`url` may end in /v1 or not."""
        self._base = url.rstrip("/").removesuffix("/v1") + "/v1"
        self._key = key

    def upload(self, path: Path) -> str:
        """The file's id. Never more than a piece of it is in memory."""
        boundary = secrets.token_hex(16)
        head = _head(boundary, path.name)
        tail = f"\r\n--{boundary}--\r\n".encode()
        length = len(head) + path.stat().st_size + len(tail)
        headers = {"content-type": f"multipart/form-data; boundary={boundary}", "content-length": str(length)}
        with open(path, "rb") as content:
            request = self._request("POST", "/files", headers, _form(head, content, tail))
            return str(_read_json(request)["id"])

    def create_batch(self, file_id: str, endpoint: str, metadata: dict[str, str]) -> dict[str, Any]:
        body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h"}
        return self._json("POST", "/batches", {**body, "metadata": metadata})

    def batch(self, batch_id: str) -> dict[str, Any]:
        return self._json("GET", f"/batches/{batch_id}")

    def cancel(self, batch_id: str) -> dict[str, Any]:
        return self._json("POST", f"/batches/{batch_id}/cancel")

    def download(self, file_id: str, into: BinaryIO) -> None:
        with _open(self._request("GET", f"/files/{file_id}/content", {}, None)) as answer:
            while piece := answer.read(PIECE_BYTES):
                into.write(piece)

    def _json(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Tried again where that may help."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": "application/json"}
        pause_s = FIRST_PAUSE_S
        for _ in range(MAX_TRIES - 1):
            try:
                return _read_json(self._request(method, path, headers, data))
            except Unsettled:
                time.sleep(pause_s)
                pause_s *= 2
        return _read_json(self._request(method, path, headers, data))

    def _request(self, method: str, path: str, headers: dict[str, str], data: Any) -> urllib.request.Request:
        named = {"authorization": f"Bearer {self._key}", **headers}
        return urllib.request.Request(self._base + path, data, named, method=method)  # noqa: S310


class Unsettled(ServiceError):
    """It may go well another time."""


def _read_json(request: urllib.request.Request) -> dict[str, Any]:
    with _open(request) as answer:
        try:
            return dict(json.load(answer))
        except ValueError:
            raise ServiceError(f"{request.full_url} doesn't answer in JSON; is it an API?") from None


def _open(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        kind = Unsettled if error.code in RETRIED else ServiceError
        raise kind(f"{error.code}: {_message(error)}") from None
    except (OSError, ValueError) as error:
        raise Unsettled(f"{request.full_url} can't be reached: {error}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason


def _head(boundary: str, name: str) -> bytes:
    quoted = name.replace("\\", "_").replace('"', "_").replace("\r", "_").replace("\n", "_")
    purpose = f'--{boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    file = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'
    return (purpose + file).encode()


def _form(head: bytes, content: BinaryIO, tail: bytes) -> Iterator[bytes]:
    yield head
    while piece := content.read(PIECE_BYTES):
        yield piece
    yield tail
