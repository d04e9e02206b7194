"""What a newcomer pastes must work as it stands."""

import ast
import json
import shlex

from operations.greeting import CURL, PYTHON, later_start, made_at_first_start

FILLED = {"url": "http://127.0.0.1:8000", "model": "some-model", "key": "octavo_ab_cd"}


def test_the_curl_line_is_one_command_with_a_json_body() -> None:
    words = shlex.split(CURL.format(**FILLED))
    assert words[0] == "curl"
    assert "http://127.0.0.1:8000/v1/chat/completions" in words
    assert "Authorization: Bearer octavo_ab_cd" in words
    assert json.loads(words[words.index("-d") + 1])["model"] == "some-model"


def test_the_python_lines_are_a_program() -> None:
    program = ast.parse(PYTHON.format(**FILLED))
    assert isinstance(program.body[0], ast.ImportFrom)


def test_secrets_are_shown_at_a_first_start_only() -> None:
    made = {"tenant": "demo", "key": "octavo_ab_cd", "operator": "operator", "password": "pass-word"}
    shown = made_at_first_start(made)
    assert "octavo_ab_cd" in shown
    assert "operator / pass-word" in shown
    assert "make key" in later_start("http://127.0.0.1:8000", "some-model")


def test_without_a_new_operator_no_login_is_shown() -> None:
    assert "login" not in made_at_first_start({"tenant": "demo", "key": "octavo_ab_cd"})
