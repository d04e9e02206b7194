"""Logs stay small, and a child that goes on appending never notices."""

from pathlib import Path

from operations.log_files import last_lines, open_log, rotate


def test_a_large_log_is_moved_aside_under_a_child_that_keeps_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with open_log(path) as log:
        log.write(b"old\n" * 100)
        assert not rotate(path, limit=400)
        assert rotate(path, limit=399)
        log.write(b"new\n")
    assert path.read_bytes() == b"new\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"old\n" * 100


def test_logs_are_read_by_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    open_log(path).close()
    assert path.stat().st_mode & 0o077 == 0


def test_last_lines_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    assert last_lines(path, 2) == []
    path.write_text("".join(f"{number}\n" for number in range(5000)))
    assert last_lines(path, 2) == ["4998", "4999"]
