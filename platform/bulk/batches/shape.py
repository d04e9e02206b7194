"""A batch as clients see it."""

from bulk.files.shape import seconds
from bulk.models import Batch, File


def batch_object(batch: Batch) -> dict[str, object]:
    return {
        "id": batch.public_id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model or None,
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        "input_file_id": batch.input_file.public_id,
        "completion_window": batch.completion_window,
        "status": batch.status,
        "output_file_id": _id(batch.output_file),
        "error_file_id": _id(batch.error_file),
        **{name: seconds(getattr(batch, name)) for name in TIMES},
        "request_counts": {
            "total": batch.num_total,
            "completed": batch.num_completed,
            "failed": batch.num_failed,
        },
        "usage": {
            "input_tokens": batch.prompt_tokens,
            "input_tokens_details": {"cached_tokens": batch.cached_tokens},
            "output_tokens": batch.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": batch.prompt_tokens + batch.output_tokens,
        },
        "metadata": batch.metadata or None,
    }


TIMES = (
    "created_at",
    "in_progress_at",
    "expires_at",
    "finalizing_at",
    "completed_at",
    "failed_at",
    "expired_at",
    "cancelling_at",
    "cancelled_at",
)


def _id(file: File | None) -> str | None:
    return None if file is None else file.public_id
