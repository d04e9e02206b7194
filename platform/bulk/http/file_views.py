"""/v1/files: upload, list, look at, download, delete."""

import asyncio
from collections.abc import AsyncIterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from api_keys.principal import Principal
from bulk.files.selectors import files_of, find_file
from bulk.files.services import delete_file, store_file
from bulk.files.shape import deleted_object, file_object
from bulk.files.storage import pieces
from bulk.http.answers import json_answer, not_found, page
from bulk.http.queries import MAX_DIGITS, Query, after, invalid
from bulk.http.upload import Form, read_form
from bulk.models import File, Purpose

MAX_LISTED = 10_000
EXPIRY_S = (3600, 30 * 86400)
KNOWN_FIELDS = {"purpose", "expires_after[anchor]", "expires_after[seconds]"}


def create_file(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    form = read_form(request, int(principal.tenant_id))
    if unknown := set(form.fields) - KNOWN_FIELDS:
        raise invalid(min(unknown), f"Unrecognized request argument supplied: {min(unknown)}")
    if form.fields.get("purpose") != Purpose.BATCH:
        raise invalid("purpose", "'purpose' must be 'batch': files are kept for batches only.")
    file = store_file(
        int(principal.tenant_id),
        principal.key_id,
        form.filename,
        Purpose.BATCH,
        form.content,
        expires_after_s=_expires_after(form),
        actor=f"api_key:{principal.key_id}",
    )
    return json_answer(file_object(file))


def _expires_after(form: Form) -> int | None:
    anchor = form.fields.get("expires_after[anchor]")
    seconds = form.fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at":
        raise invalid("expires_after.anchor", "'expires_after.anchor' must be 'created_at'.")
    least, most = EXPIRY_S
    is_number = seconds is not None and seconds.isdecimal() and len(seconds) <= MAX_DIGITS
    if seconds is None or not is_number or not least <= int(seconds) <= most:
        raise invalid("expires_after.seconds", f"'expires_after.seconds' must be from {least} to {most}.")
    return int(seconds)


def list_files(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    query = Query(request, "limit", "after", "order", "purpose")
    limit, order = (
        query.number("limit", MAX_LISTED, MAX_LISTED),
        query.choice("order", ("asc", "desc"), "desc"),
    )
    files = files_of(int(principal.tenant_id))
    if purpose := query.text("purpose"):
        files = files.filter(purpose=purpose)
    found = after(files, query.text("after"), order)[: limit + 1]
    return json_answer(page(list(found), limit, file_object))


def show_file(request: HttpRequest, principal: Principal, public_id: str) -> HttpResponseBase:
    return json_answer(file_object(_find(principal, public_id)))


def remove_file(request: HttpRequest, principal: Principal, public_id: str) -> HttpResponseBase:
    file = _find(principal, public_id)
    delete_file(file, actor=f"api_key:{principal.key_id}")
    return json_answer(deleted_object(file))


def show_content(request: HttpRequest, principal: Principal, public_id: str) -> HttpResponseBase:
    """A piece at a time, whatever its size."""
    file = _find(principal, public_id)
    answer = StreamingHttpResponse(_read(file), content_type="application/octet-stream")
    answer.headers["Content-Length"] = str(file.num_bytes)
    answer.headers["Content-Disposition"] = f'attachment; filename="{file.public_id}.jsonl"'
    return answer


async def _read(file: File) -> AsyncIterator[bytes]:
    reading = pieces(file)
    while piece := await asyncio.to_thread(next, reading, b""):
        yield piece


def _find(principal: Principal, public_id: str) -> File:
    file = find_file(int(principal.tenant_id), public_id)
    if file is None:
        raise not_found("file", public_id)
    return file
