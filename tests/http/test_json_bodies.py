"""The JSON parsing suite as bodies, over the real server: what isn't JSON is 400, and nothing breaks it."""

from pathlib import Path

import pytest

from http_service import Service, checked_error
from requirements_of_tests import require
from stand_ins.tiny_text import SHARED_DATA

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
NO_VALUE = {"n_single_space.json", "n_structure_no_data.json"}
"""Nothing at all is no JSON text, but makes an empty list."""


def suite(prefix: str) -> list[Path]:
    folder = SHARED_DATA / "json_parsing" / "test_parsing"
    require(folder.is_dir(), "the JSON parsing suite is not here")
    return sorted(folder.glob(f"{prefix}_*.json"))


@pytest.mark.parametrize("path", PATHS)
def test_what_is_no_json_is_400_on_every_path(service: Service, path: str) -> None:
    files = suite("n")
    assert len(files) == 188
    for file in files:
        assert service.post(path, file.read_bytes()).status_code == 400, file.name


@pytest.mark.parametrize("prefix", ["y", "i"])
def test_no_text_of_the_suite_breaks_anything(service: Service, prefix: str) -> None:
    for path in PATHS:
        for file in suite(prefix):
            assert service.post(path, file.read_bytes()).status_code == 400, file.name


@pytest.mark.parametrize("prefix", ["n", "y", "i"])
def test_as_a_value_within_a_body(service: Service, prefix: str) -> None:
    """As the parameters' default in a tool: well-formed JSON is taken there, whatever it is."""
    start = (
        b'{"model": "%s", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}], '
        b'"tools": [{"type": "function", "function": {"name": "f", "parameters": {"default": ['
    ) % service.model.encode()
    for file in suite(prefix):
        response = service.post("/v1/chat/completions", start + file.read_bytes() + b"]}}}]}")
        if prefix == "n" and file.name not in NO_VALUE:
            assert response.status_code == 400, file.name
            checked_error(response)
        elif prefix == "y":
            assert response.status_code == 200, (file.name, response.text)
        else:
            assert response.status_code in (200, 400), file.name
