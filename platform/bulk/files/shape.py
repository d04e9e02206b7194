"""A file as clients see it."""

from datetime import datetime

from bulk.models import File


def file_object(file: File) -> dict[str, object]:
    return {
        "id": file.public_id,
        "object": "file",
        "bytes": file.num_bytes,
        "created_at": seconds(file.created_at),
        "expires_at": seconds(file.expires_at),
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def deleted_object(file: File) -> dict[str, object]:
    return {"id": file.public_id, "object": "file", "deleted": True}


def seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
