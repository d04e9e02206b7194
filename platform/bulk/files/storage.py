"""Where contents lie: a folder of the home, or a bucket (settings.STORAGES["files"])."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import structlog
from django.conf import settings
from django.core.files import File as DjangoFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from bulk.models import File

log = structlog.get_logger(__name__)

PIECE_BYTES = 256 * 1024


class StorageUnavailable(Exception):
    """The disk or the bucket doesn't do what it is asked."""


def files_storage() -> Storage:
    return storages["files"]


@contextlib.contextmanager
def storage_errors() -> Iterator[None]:
    """Whatever goes wrong in there, of whichever library, as StorageUnavailable."""
    try:
        yield
    except Exception as error:
        log.warning("storage_failed", error=str(error))
        raise StorageUnavailable(type(error).__name__) from error


def keep(content: IO[bytes], name: str) -> str:
    """The name that it now has in the storage. Raises StorageUnavailable."""
    with storage_errors():
        return files_storage().save(name, DjangoFile(content, name))


def discard(name: str) -> None:
    """Also if it is gone already. Raises StorageUnavailable."""
    with storage_errors():
        files_storage().delete(name)


def pieces(file: File) -> Iterator[bytes]:
    """Its content, a piece at a time. Raises StorageUnavailable."""
    with storage_errors(), files_storage().open(file.storage_name, "rb") as content:
        while piece := content.read(PIECE_BYTES):
            yield piece


def local_path(file: File) -> Path:
    """A path to read ranges from: of the file itself, or of a copy that is fetched once for each machine.

    Raises StorageUnavailable.
    """
    storage = files_storage()
    if isinstance(storage, FileSystemStorage):
        return Path(storage.path(file.storage_name))
    copy = copies_folder() / file.public_id
    if not copy.exists():
        _fetch(file, copy)
    return copy


def forget_copy(file: File) -> None:
    (copies_folder() / file.public_id).unlink(missing_ok=True)


def copies_folder() -> Path:
    folder = Path(settings.OCTAVO_HOME) / "cache" / "files"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _fetch(file: File, copy: Path) -> None:
    """Appears whole or not at all, whoever else fetches it."""
    draft = copy.with_name(f".{copy.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with storage_errors(), files_storage().open(file.storage_name, "rb") as content:
            with open(draft, "wb") as local:
                shutil.copyfileobj(content, local, PIECE_BYTES)
            draft.rename(copy)
    finally:
        draft.unlink(missing_ok=True)
