"""The paths that Django answers under /v1."""

FILES, BATCHES = "/v1/files", "/v1/batches"


def is_bulk_path(path: str) -> bool:
    return path in (FILES, BATCHES) or path.startswith((f"{FILES}/", f"{BATCHES}/"))
