import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from control_plane.secret_key import secret_key_from_file


def test_one_key_is_drawn_for_all_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: secret_key_from_file(path), range(64)))
    assert len(keys) == 1 and len(keys.pop()) > 60
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    secret_key_from_file(path)
    path.chmod(0o644)
    with pytest.raises(ImproperlyConfigured, match="readable by others"):
        secret_key_from_file(path)
