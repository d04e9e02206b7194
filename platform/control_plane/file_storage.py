"""Where uploaded and assembled files are kept: a folder of the owner's alone, or an S3-compatible bucket."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from control_plane.env import Environment


def files_storage(env: Environment, folder: Path) -> dict[str, Any]:
    """An entry of STORAGES."""
    bucket = env.text("OCTAVO_FILES_BUCKET")
    if bucket is None:
        options = {
            "location": str(folder),
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        }
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}
    access_key, secret_key = env.text("OCTAVO_FILES_ACCESS_KEY"), env.text("OCTAVO_FILES_SECRET_KEY")
    if (access_key is None) != (secret_key is None):
        raise ImproperlyConfigured("OCTAVO_FILES_ACCESS_KEY and OCTAVO_FILES_SECRET_KEY go together")
    given = {
        "bucket_name": bucket,
        "location": env.text("OCTAVO_FILES_PREFIX"),
        "endpoint_url": env.text("OCTAVO_FILES_ENDPOINT"),
        "region_name": env.text("OCTAVO_FILES_REGION"),
        "access_key": access_key,
        "secret_key": secret_key,
    }
    options = {name: value for name, value in given.items() if value is not None}
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": {"default_acl": None, **options}}
