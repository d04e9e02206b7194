"""One line of an output or error file."""

import msgspec

from bulk.models import Batch, BatchStatus
from bulk.public_ids import line_id
from gateway.errors import SHAPES, error_object
from tenants.errors import Denied

WHY_UNFINISHED = {
    BatchStatus.EXPIRED: (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    BatchStatus.CANCELLED: ("batch_cancelled", "This request was not executed: the batch was cancelled."),
}


def answered(batch: str, number: int, custom_id: str, request_id: str, body: object) -> str:
    return _result(batch, number, custom_id, _response(200, request_id, body))


def failed(batch: str, number: int, custom_id: str, request_id: str, denied: Denied) -> str:
    response = _response(SHAPES[denied.code].status, request_id, error_object(denied))
    return _result(batch, number, custom_id, response)


def unfinished(batch: Batch, number: int, custom_id: str, ending: BatchStatus) -> str:
    code, message = WHY_UNFINISHED[ending]
    return _result(batch.public_id, number, custom_id, None, {"code": code, "message": message})


def _response(status: int, request_id: str, body: object) -> dict[str, object]:
    return {"status_code": status, "request_id": request_id, "body": body}


def _result(
    batch: str,
    number: int,
    custom_id: str,
    response: dict[str, object] | None,
    error: dict[str, str] | None = None,
) -> str:
    result = {
        "id": line_id(batch, number),
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    return msgspec.json.encode(result).decode()
