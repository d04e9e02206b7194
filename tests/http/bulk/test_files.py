"""/v1/files as the openai client and as anybody else may use it."""

import io
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from batch_client import BatchClient
from http_service import checked_error
from octavo_stack import Stack

MEGABYTE = 1000 * 1000


class Zeros(io.RawIOBase):
    """A file of any size that takes no memory."""

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def read(self, size: int = -1) -> bytes:
        count = self._left if size < 0 else min(size, self._left)
        self._left -= count
        return b"0" * count


def upload(stack: Stack, content: Any, **headers: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {stack.keys['alice']}", **headers}
    named = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return httpx.post(f"{stack.base_url}/v1/files", content=content, headers=named, timeout=60)


def form(*parts: tuple[str, str, bytes]) -> tuple[bytes, str]:
    """(name, filename or "", content) each; and its content type."""
    body = b""
    for name, filename, content in parts:
        disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
        body += f"--x\r\ncontent-disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n"
    return body + b"--x--\r\n", "multipart/form-data; boundary=x"


def test_a_file_goes_up_comes_down_and_goes_away(alice: BatchClient) -> None:
    content = bytes(range(256)) * 5000
    file = alice.api.files.create(file=("né 1.jsonl", content), purpose="batch")
    assert (file.filename, file.bytes, file.purpose, file.status) == (
        "né 1.jsonl",
        len(content),
        "batch",
        "processed",
    )
    assert alice.api.files.retrieve(file.id) == file
    assert alice.api.files.content(file.id).content == content
    assert alice.api.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        alice.api.files.retrieve(file.id)
    with pytest.raises(openai.NotFoundError):
        alice.api.files.content(file.id)


def test_lists_go_by_pages_and_in_both_orders(charlie: BatchClient) -> None:
    made = [charlie.api.files.create(file=(f"{n}.jsonl", b"{}"), purpose="batch").id for n in range(5)]
    assert [file.id for file in charlie.api.files.list(limit=2)] == made[::-1]
    assert [file.id for file in charlie.api.files.list(limit=2, order="asc")] == made
    page = charlie.api.files.list(limit=2, after=made[3])
    assert [file.id for file in page.data] == [made[2], made[1]]
    assert page.has_more
    assert not charlie.api.files.list(purpose="batch_output").data
    for name in made:
        charlie.api.files.delete(name)


def test_an_expiry_may_be_asked_for(alice: BatchClient) -> None:
    expiry: Any = {"anchor": "created_at", "seconds": 3600}
    file = alice.api.files.create(file=("a", b"{}"), purpose="batch", expires_after=expiry)
    assert file.expires_at == file.created_at + 3600
    with pytest.raises(openai.BadRequestError, match="seconds"):
        alice.api.files.create(file=("a", b"{}"), purpose="batch", expires_after={**expiry, "seconds": 5})


def test_another_tenants_file_is_not_there(alice: BatchClient, bob: BatchClient) -> None:
    file = alice.api.files.create(file=("a.jsonl", b"{}"), purpose="batch")
    for act in (bob.api.files.retrieve, bob.api.files.content, bob.api.files.delete):
        with pytest.raises(openai.NotFoundError):
            act(file.id)
    with pytest.raises(openai.BadRequestError, match="after"):
        bob.api.files.list(after=file.id)
    with pytest.raises(openai.BadRequestError) as refused:
        bob.api.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
    assert refused.value.param == "input_file_id"
    assert file.id not in [each.id for each in bob.api.files.list()]
    assert alice.api.files.retrieve(file.id) == file


@pytest.mark.parametrize("header", [None, b"Bearer octavo_x_y", "Bearer schlüssel".encode(), b"Basic YQ=="])
@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches", "/v1/files/file-1/content"])
def test_nobody_without_a_key_comes_in(bulk_stack: Stack, header: bytes | None, path: str) -> None:
    headers = {} if header is None else {b"authorization": header}
    refused = httpx.get(bulk_stack.base_url + path, headers=headers)
    assert refused.status_code == 401
    assert checked_error(refused)["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/v1/files", 405),
        ("POST", "/v1/files/file-1", 405),
        ("PATCH", "/v1/batches/batch_1", 405),
        ("GET", "/v1/batches/batch_1/cancel", 405),
        ("GET", "/v1/files/file-1/nothing", 404),
        ("GET", "/v1/files/", 404),
        ("GET", "/v1/files/file-1", 404),
        ("POST", "/v1/batches/batch_1/cancel", 404),
        ("POST", "/v1/files", 415),
        ("POST", "/v1/batches", 415),
        ("GET", "/v1/files?limit=0", 400),
        ("GET", "/v1/files?limit=x", 400),
        ("GET", "/v1/files?order=up", 400),
        ("GET", "/v1/files?pupose=batch", 400),
        ("GET", "/v1/batches?after=batch_1", 400),
    ],
)
def test_whatever_is_wrong_has_the_one_shape(bulk_stack: Stack, method: str, path: str, status: int) -> None:
    headers = {"authorization": f"Bearer {bulk_stack.keys['alice']}"}
    refused = httpx.request(method, bulk_stack.base_url + path, headers=headers)
    assert refused.status_code == status, refused.text
    checked_error(refused)
    assert (status == 405) == ("allow" in refused.headers)


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ([("purpose", "", b"batch")], "file"),
        ([("file", "a", b"{}")], "purpose"),
        ([("file", "a", b"{}"), ("purpose", "", b"fine-tune")], "purpose"),
        ([("file", "a", b"{}"), ("purpose", "", b"batch"), ("mode", "", b"x")], "mode"),
        ([("file", "a", b"{}"), ("file", "b", b"{}"), ("purpose", "", b"batch")], "file"),
        ([("document", "a", b"{}"), ("purpose", "", b"batch")], "file"),
        ([("file", "", b"{}"), ("purpose", "", b"batch")], "file"),
    ],
)
def test_a_form_that_is_none_of_ours(
    bulk_stack: Stack, parts: list[tuple[str, str, bytes]], param: str
) -> None:
    body, kind = form(*parts)
    refused = upload(bulk_stack, body, **{"content-type": kind})
    assert refused.status_code == 400, refused.text
    assert checked_error(refused)["param"] == param


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=\xff"])
def test_a_form_that_cant_be_read(bulk_stack: Stack, kind: str) -> None:
    refused = upload(bulk_stack, b"--x\r\nnonsense", **{"content-type": kind})
    assert refused.status_code == 400, refused.text
    checked_error(refused)


def test_too_large_a_file_is_refused_before_it_fills_anything(bulk_stack: Stack) -> None:
    head, _, tail = form(("purpose", "", b"batch"), ("file", "a", b"|"))[0].partition(b"|")
    size = 201 * MEGABYTE

    def pieces() -> Any:
        yield head
        zeros = Zeros(size)
        while piece := zeros.read(1 << 20):
            yield piece
        yield tail

    before = peak_memory(bulk_stack)
    kind = {"content-type": "multipart/form-data; boundary=x"}
    for length in ({"content-length": str(len(head) + size + len(tail))}, {}):
        refused = upload(bulk_stack, pieces(), **kind, **length)
        assert refused.status_code == 413, refused.text
        assert checked_error(refused)["code"] == "body_too_large"
    assert peak_memory(bulk_stack) - before < 64 * MEGABYTE
    assert not list((bulk_stack.home / "tmp").iterdir())


def peak_memory(stack: Stack) -> int:
    """Of the gateway, in bytes."""
    status = Path(f"/proc/{stack.processes['gateway'].pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_a_tenants_files_have_a_limit(bulk_stack: Stack, charlie: BatchClient) -> None:
    bulk_stack.manage("set_limit", "charlie", "stored_bytes", "10000")
    once = charlie.api.with_options(max_retries=0)
    try:
        with pytest.raises(openai.RateLimitError, match="may store") as refused:
            once.files.create(file=("a", b"0" * 10001), purpose="batch")
        assert refused.value.code == "insufficient_quota"
        first = once.files.create(file=("a", b"0" * 6000), purpose="batch")
        with pytest.raises(openai.RateLimitError, match="may store"):
            once.files.create(file=("a", b"0" * 6000), purpose="batch")
        once.files.delete(first.id)
        again = once.files.create(file=("a", b"0" * 6000), purpose="batch")
        once.files.delete(again.id)
    finally:
        bulk_stack.manage("set_limit", "charlie", "stored_bytes", "none")


def test_a_key_without_the_scope_and_a_tenant_without_the_feature_stay_out(bulk_stack: Stack) -> None:
    inference = bulk_stack.manage("create_key", "charlie", "--name", "chat only").split()[-1]
    refused = httpx.get(f"{bulk_stack.base_url}/v1/files", headers={"authorization": f"Bearer {inference}"})
    assert refused.status_code == 403
    assert "files and batches" in checked_error(refused)["message"]
