"""A bucket in the place of a folder: the same files, and a copy to read lines from."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from api_keys.services import create_key
from bulk.files.services import delete_file, store_file
from bulk.files.storage import StorageUnavailable, copies_folder, local_path, pieces
from bulk.models import File, Purpose
from control_plane.env import Environment
from control_plane.file_storage import files_storage
from tenants.models import Tenant

CONTENT = bytes(range(256)) * 4000


@pytest.fixture
def bucket(settings: Any, tmp_path: Path) -> Iterator[Any]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "OCTAVO_FILES_BUCKET": "octavo",
        "OCTAVO_FILES_PREFIX": "batches",
        "OCTAVO_FILES_ENDPOINT": f"http://{host}:{port}",
        "OCTAVO_FILES_REGION": "us-east-1",
        "OCTAVO_FILES_ACCESS_KEY": "test",
        "OCTAVO_FILES_SECRET_KEY": "test",
    }
    settings.STORAGES = {**settings.STORAGES, "files": files_storage(Environment(given), tmp_path)}
    settings.OCTAVO_HOME = tmp_path
    client = boto3.client(
        "s3",
        endpoint_url=given["OCTAVO_FILES_ENDPOINT"],
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="octavo")
    yield client
    server.stop()


def store(tenant: Tenant) -> File:
    key = create_key(tenant, "bulk", scopes=["batch"])[0]
    return store_file(tenant.pk, key.public_id, "in.jsonl", Purpose.BATCH, io.BytesIO(CONTENT))


def names(bucket: Any) -> list[str]:
    return [found["Key"] for found in bucket.list_objects_v2(Bucket="octavo").get("Contents", [])]


def test_a_file_goes_to_the_bucket_and_comes_back(bucket: Any, tenant: Tenant) -> None:
    file = store(tenant)
    assert names(bucket) == [f"batches/{tenant.pk}/{file.public_id}"]
    assert b"".join(pieces(file)) == CONTENT
    path = local_path(file)
    assert path.parent == copies_folder()
    assert path.read_bytes() == CONTENT
    assert local_path(file) == path
    delete_file(file)
    assert names(bucket) == []
    assert not path.exists()


def test_a_bucket_that_is_away_is_said_so(bucket: Any, tenant: Tenant) -> None:
    file = store(tenant)
    bucket.delete_object(Bucket="octavo", Key=names(bucket)[0])
    bucket.delete_bucket(Bucket="octavo")
    with pytest.raises(StorageUnavailable):
        list(pieces(file))
    with pytest.raises(StorageUnavailable):
        store(tenant)
    assert File.objects.count() == 1
