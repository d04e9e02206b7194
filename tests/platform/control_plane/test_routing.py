import pytest

from control_plane.routing import is_hot_path, is_loopback


@pytest.mark.parametrize(
    ("path", "hot"),
    [
        ("/v1/chat/completions", True),
        ("/v1/", True),
        ("/v1", True),
        ("/health", True),
        ("/ready", True),
        ("/tokenize", True),
        ("/detokenize", True),
        ("/chat/completions", True),
        ("/healthy", True),
        ("/adminer", True),
        ("/", False),
        ("/admin", False),
        ("/admin/", False),
        ("/api/v1/tenants", False),
        ("/v1/files", False),
        ("/v1/batches/x/cancel", False),
        ("/static/v1/x.js", False),
    ],
)
def test_paths_of_the_generation_application(path: str, hot: bool) -> None:
    assert is_hot_path(path) is hot


@pytest.mark.parametrize(
    ("server", "local"),
    [
        (("127.0.0.1", 8000), True),
        (("127.8.9.1", 8000), True),
        (("::1", 8000), True),
        (("/run/octavo.sock", None), True),
        (("10.0.0.5", 8000), False),
        (("0.0.0.0", 8000), False),
        (("::", 8000), False),
        (("example.org", 80), False),
        (None, False),
    ],
)
def test_the_console_is_for_the_loopback(server: object, local: bool) -> None:
    assert is_loopback(server) is local
