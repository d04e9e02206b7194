"""Paths below /v1/files and /v1/batches."""

import pytest

from bulk.http.file_views import show_file
from bulk.http.routes import find_view
from inference_engine.contract.codes import Code
from tenants.errors import Denied


def test_a_path_names_a_view_and_an_object() -> None:
    assert find_view("GET", "/v1/files/file-1") == (show_file, {"public_id": "file-1"})


@pytest.mark.parametrize(
    "path", ["/v1/files/", "/v1/files/a/b", "/v1/files/a\x00b", "/v1/batches/\x00/cancel"]
)
def test_other_paths_lead_nowhere(path: str) -> None:
    """PostgreSQL would not even look for a NUL."""
    with pytest.raises(Denied) as refused:
        find_view("POST" if path.endswith("cancel") else "GET", path)
    assert refused.value.code is Code.NOT_FOUND
