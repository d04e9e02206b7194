"""A form on its way to the disk. Linux' /dev/full is a disk that is full."""

import tempfile
from io import BytesIO
from typing import IO, Any

import pytest
from django.http import HttpRequest, QueryDict
from django.test import RequestFactory

from bulk.files.storage import StorageUnavailable
from bulk.http import upload
from bulk.http.file_views import _expires_after
from bulk.http.upload import Form, read_form
from tenants.errors import Denied
from tenants.models import Tenant

KIND = "multipart/form-data; boundary=x"


def form_with(content: bytes) -> HttpRequest:
    head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    return RequestFactory().post("/v1/files", head + content + b"\r\n--x--\r\n", content_type=KIND)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """What uploads were written to."""
    files: list[IO[bytes]] = []

    def full_disk(dir: Any) -> IO[bytes]:
        files.append(open("/dev/full", "r+b"))  # noqa: SIM115
        return files[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", full_disk)
    return files


@pytest.mark.parametrize("num_bytes", [10, 1_000_000])
def test_a_full_disk_is_said_so_and_nothing_is_kept_open(
    tenant: Tenant, opened: list[IO[bytes]], num_bytes: int
) -> None:
    with pytest.raises(StorageUnavailable):
        read_form(form_with(b"0" * num_bytes), tenant.pk)
    assert [file.closed for file in opened] == [True]


def test_a_file_that_grows_too_large_is_not_kept_open(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[IO[bytes]] = []
    make = tempfile.TemporaryFile

    def noted(dir: Any) -> IO[bytes]:
        files.append(make(dir=dir))
        return files[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    monkeypatch.setattr(upload, "MAX_FILE_BYTES", 100)
    with pytest.raises(Denied, match="larger than the 100 bytes"):
        read_form(form_with(b"0" * 101), tenant.pk)
    assert [file.closed for file in files] == [True]


@pytest.mark.parametrize("seconds", ["000003600" + "9" * 12, "00000360099999", "3599", "2592001", "x", ""])
def test_a_file_lives_within_bounds(seconds: str) -> None:
    fields = QueryDict(mutable=True)
    fields.update({"expires_after[anchor]": "created_at", "expires_after[seconds]": seconds})
    with pytest.raises(Denied, match=r"must be from 3600 to 2592000"):
        _expires_after(Form(fields, "a", BytesIO()))
