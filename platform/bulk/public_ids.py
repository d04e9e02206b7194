"""Names that clients know files and batches by."""

import secrets


def file_id() -> str:
    return f"file-{secrets.token_hex(12)}"


def batch_id() -> str:
    return f"batch_{secrets.token_hex(12)}"


def line_id(batch: str, number: int) -> str:
    """The same whoever answers the line."""
    return f"batch_req_{batch.removeprefix('batch_')}_{number}"


def request_id(batch: str, number: int, fence: int) -> str:
    """Of one attempt at a line, for the ledger, which takes each id once."""
    return f"req_{batch.removeprefix('batch_')}_{number}_{fence}"
