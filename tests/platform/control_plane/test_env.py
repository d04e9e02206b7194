"""The environment is read strictly: what can't be read is named, and its value is never shown."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from control_plane.env import Environment, database


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    assert Environment({"X_FILE": str(file)}).text("X") == "s3cret"
    assert Environment({"X": "direct", "X_FILE": ""}).text("X") == "direct"
    assert Environment({"B": "second"}).text("A", "B") == "second"
    assert Environment({"X": ""}).text("X") is None


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_file_that_gives_nothing_is_an_error(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ImproperlyConfigured, match="X_FILE"):
        Environment({"X_FILE": str(file)}).text("X")


def test_both_ways_at_once_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="X and X_FILE"):
        Environment({"X": "a", "X_FILE": str(tmp_path)}).text("X")


@pytest.mark.parametrize("text", ["ten", "1.5", "0", "101", "1e2"])
def test_whole_numbers_within_bounds_only(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="X must be") as caught:
        Environment({"X": text}).integer("X", 5, minimum=1, maximum=100)
    assert text == "0" or text not in str(caught.value).replace("from 1 to 100", "")


def test_numbers_and_words() -> None:
    env = Environment({"N": "10", "F": "0.5", "L": "a, b,,c", "BAD": "half", "NAN": "nan"})
    assert env.integer("N", 1, minimum=1) == 10 and env.integer("absent", 7, minimum=1) == 7
    assert env.number("F", 1.0, minimum=0, maximum=1) == 0.5
    assert env.words("L", []) == ["a", "b", "c"] and env.words("absent", ["d"]) == ["d"]
    for name in ("BAD", "NAN"):
        with pytest.raises(ImproperlyConfigured, match=name):
            env.number(name, 1.0, minimum=0, maximum=1)


def test_sqlite_takes_its_write_lock_at_begin(tmp_path: Path) -> None:
    for found in (database(None, tmp_path / "a.db"), database(f"sqlite://{tmp_path}/a.db", tmp_path)):
        assert found["NAME"] == str(tmp_path / "a.db")
        assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"  # type: ignore[index]


def test_a_postgresql_url_is_taken_apart(tmp_path: Path) -> None:
    found = database("postgresql://al%40ice:p%2Fw@db.example:5433/octavo?sslmode=require", tmp_path)
    assert {name: found[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")} == {
        "NAME": "octavo",
        "USER": "al@ice",
        "PASSWORD": "p/w",
        "HOST": "db.example",
        "PORT": "5433",
    }
    assert found["OPTIONS"]["sslmode"] == "require"  # type: ignore[index]
    assert database("postgres:///octavo?host=/run/pg", tmp_path)["HOST"] == "/run/pg"


def test_another_database_is_refused_without_showing_its_password(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        database("mysql://u:hush@h/db", tmp_path)
    assert "hush" not in str(caught.value)
