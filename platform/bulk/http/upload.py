"""A form with one file in it, written to disk as it is read; the cap holds for each byte that comes."""

import contextlib
import tempfile
from typing import IO, Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, QueryDict
from django.http.multipartparser import MultiPartParserError

from bulk.files.services import check_room, scratch_folder
from bulk.files.storage import storage_errors
from bulk.http.answers import WrongMediaType
from bulk.http.queries import invalid
from bulk.limits import MAX_FILE_BYTES
from inference_engine.contract.codes import Code
from tenants.errors import Denied

FIELD = "file"


class Form:
    """What an upload consists of."""

    def __init__(self, fields: QueryDict, filename: str, content: IO[bytes]) -> None:
        self.fields, self.filename, self.content = fields, filename, content


def read_form(request: HttpRequest, tenant_id: int) -> Form:
    """Raises Denied for whatever is no such form, StorageUnavailable; nothing of it stays on disk then."""
    if request.content_type != "multipart/form-data":
        raise WrongMediaType(
            "A file is uploaded as multipart/form-data, with the fields 'file' and 'purpose'."
        )
    _tell_length(request)
    to_disk = ToDisk(tenant_id, request)
    request.upload_handlers = [to_disk]
    try:
        fields, files = _read(request, to_disk)
    except (RequestDataTooBig, SuspiciousOperation) as error:
        raise Denied(Code.BODY_TOO_LARGE, f"The form's fields are too many or too large: {error}") from None
    except (MultiPartParserError, ValueError) as error:
        raise Denied(Code.INVALID_REQUEST, f"The form can't be read: {error}") from None
    uploaded = files.get(FIELD)
    if uploaded is None or uploaded.file is None:
        raise invalid(FIELD, "The form has no file in its field 'file'.")
    return Form(fields, (uploaded.name or FIELD)[:255], uploaded.file)


def _read(request: HttpRequest, to_disk: "ToDisk") -> tuple[QueryDict, Any]:
    """Raises what reading raises; Django's parser would then keep the file open for a while."""
    try:
        return request.POST, request.FILES
    except BaseException:
        to_disk.discard()
        raise


def _tell_length(request: HttpRequest) -> None:
    """Django takes a form that came without a length for an empty one. All of it is here by now."""
    if not request.META.get("CONTENT_LENGTH"):
        stream: IO[bytes] = request._stream
        request.META["CONTENT_LENGTH"] = str(stream.seek(0, 2))
        stream.seek(0)


class ToDisk(FileUploadHandler):
    def __init__(self, tenant_id: int, request: HttpRequest) -> None:
        super().__init__(request)
        self._tenant_id = tenant_id
        self._content: IO[bytes] | None = None
        self._num_bytes = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if self.field_name != FIELD or self._content is not None:
            raise invalid(FIELD, "The form may hold one file only, in its field 'file'.")
        check_room(self._tenant_id, 1)
        with storage_errors():
            self._content = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._num_bytes += len(raw_data)
        if self._num_bytes > MAX_FILE_BYTES:
            message = f"The file is larger than the {MAX_FILE_BYTES} bytes that a file may have."
            raise Denied(Code.BODY_TOO_LARGE, message, param=FIELD)
        assert self._content is not None
        with storage_errors():
            self._content.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile:
        assert self._content is not None
        with storage_errors():
            self._content.seek(0)
        return UploadedFile(self._content, self.file_name, self.content_type, file_size)

    def discard(self) -> None:
        if self._content is not None:
            with contextlib.suppress(OSError):  # a full disk, told of once more
                self._content.close()
