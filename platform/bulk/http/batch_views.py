"""/v1/batches: make, list, look at, cancel."""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponseBase
from msgspec import Meta, Struct

from api_keys.principal import Principal
from bulk.batches.selectors import batches_of, find_batch
from bulk.batches.services import cancel_batch, create_batch
from bulk.batches.shape import batch_object
from bulk.http.answers import WrongMediaType, json_answer, not_found, page
from bulk.http.queries import Query, after
from bulk.models import Batch
from gateway.orders.fields import WITHOUT_NUL, Metadata
from gateway.transport.strict_json import StrictDecoder

MAX_LISTED, LISTED = 100, 20


class OutputExpiry(Struct, forbid_unknown_fields=True):
    anchor: Literal["created_at"]
    seconds: Annotated[int, Meta(ge=3600, le=30 * 86400)]


class BatchBody(Struct, forbid_unknown_fields=True, kw_only=True):
    input_file_id: Annotated[str, Meta(min_length=1, max_length=64, pattern=WITHOUT_NUL)]
    endpoint: str
    completion_window: str
    metadata: Metadata | None = None
    output_expires_after: OutputExpiry | None = None


_decoder = StrictDecoder(BatchBody)


def make_batch(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    if request.content_type != "application/json":
        raise WrongMediaType("The body must be application/json.")
    body: BatchBody = _decoder.decode(request.body)
    expiry = body.output_expires_after
    batch = create_batch(
        principal,
        body.input_file_id,
        body.endpoint,
        body.completion_window,
        metadata=body.metadata or {},
        output_expires_after_s=None if expiry is None else expiry.seconds,
        address=request.META.get("REMOTE_ADDR") or "",
    )
    return json_answer(batch_object(batch))


def list_batches(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    query = Query(request, "limit", "after")
    limit = query.number("limit", LISTED, MAX_LISTED)
    found = after(batches_of(int(principal.tenant_id)), query.text("after"), "desc")[: limit + 1]
    return json_answer(page(list(found), limit, batch_object))


def show_batch(request: HttpRequest, principal: Principal, public_id: str) -> HttpResponseBase:
    return json_answer(batch_object(_find(principal, public_id)))


def stop_batch(request: HttpRequest, principal: Principal, public_id: str) -> HttpResponseBase:
    batch = cancel_batch(_find(principal, public_id), actor=f"api_key:{principal.key_id}")
    return json_answer(batch_object(batch))


def _find(principal: Principal, public_id: str) -> Batch:
    batch = find_batch(int(principal.tenant_id), public_id)
    if batch is None:
        raise not_found("batch", public_id)
    return batch
