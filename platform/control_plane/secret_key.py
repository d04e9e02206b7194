"""Django's secret key where the environment names none: drawn once, in a file that only its owner reads."""

import os
import secrets
import stat
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def secret_key_from_file(path: Path) -> str:
    """Processes that start at once agree: the file appears whole, under its name, or not at all."""
    if not path.exists():
        _create(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ImproperlyConfigured(f"{path.name} is readable by others (mode {mode:o}); chmod it to 600")
    return path.read_text(encoding="ascii").strip()


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(64))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first; its key is the key
    finally:
        draft.unlink()
