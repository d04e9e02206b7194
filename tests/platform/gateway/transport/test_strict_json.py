"""Bodies against their schemas."""

import contextlib
from pathlib import Path

import pytest

from gateway.chat.body import ChatBody
from gateway.completions.body import CompletionBody
from gateway.transport.strict_json import StrictDecoder
from inference_engine.contract.codes import Code
from tenants.errors import Denied

CHAT = StrictDecoder(ChatBody)
COMPLETION = StrictDecoder(CompletionBody)
SUITE = Path(__file__).resolve().parents[5] / "shared" / "data" / "json_parsing" / "test_parsing"


def denied(decoder: StrictDecoder, body: bytes) -> Denied:
    with pytest.raises(Denied) as found:
        decoder.decode(body)
    return found.value


def test_a_plain_body() -> None:
    body = COMPLETION.decode(b'{"model": "m", "prompt": [1, 2], "temperature": 1, "seed": -1}')
    assert (body.prompt, body.temperature, body.seed, body.stream) == ([1, 2], 1.0, -1, None)


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b'{"prompt": "x"}', Code.INVALID_REQUEST, "model"),
        (b'{"model": "m", "prompt": "x", "y": 1}', Code.INVALID_REQUEST, "y"),
        (
            b'{"model": "m", "prompt": "x", "stream_options": {"z": 1}}',
            Code.INVALID_REQUEST,
            "stream_options.z",
        ),
        (b'{"model": "m", "prompt": [1, true]}', Code.INVALID_REQUEST, "prompt[1]"),
        (b'{"model": "m", "prompt": "x", "temperature": 3}', Code.INVALID_REQUEST, "temperature"),
        (b'{"model": "m", "prompt": "x", "metadata": {"a": 1}}', Code.INVALID_REQUEST, "metadata[...]"),
        (b"[]", Code.INVALID_REQUEST, None),
        (b"{", Code.INVALID_JSON, None),
        (b"", Code.INVALID_JSON, None),
        (b'{"model": "m", "prompt": "x", "model": "n"}', Code.INVALID_JSON, "model"),
        (b'{"model": "m", "prompt": "x", "mod\\u0065l": "n"}', Code.INVALID_JSON, "model"),
        (b'{"\\u006D\\u006fdel" : "m", "prompt": "x", "model": "n"}', Code.INVALID_JSON, "model"),
    ],
)
def test_what_is_wrong_is_named(body: bytes, code: Code, param: str | None) -> None:
    error = denied(COMPLETION, body)
    assert (error.code, error.param) == (code, param)
    assert "`" not in error.message


@pytest.mark.parametrize("depth", range(940, 1000, 3))
def test_a_suspect_at_the_edge_of_what_can_be_nested_is_refused_like_any_other(depth: int) -> None:
    """The two parsers give up at different depths."""
    functions = b"[" * depth + b"]" * depth
    raw = b'{"model": "m", "messages": [], "model": "m", "functions": ' + functions + b"}"
    assert denied(CHAT, raw).code is Code.INVALID_JSON


def test_repeated_names_inside_values_are_none_of_our_business() -> None:
    text = rb"\"model\": \"model\":"
    raw = (
        b'{"model": "m", "messages": [{"role": "user", "content": "'
        + text
        + b'"}], "metadata": {"model": "a"}}'
    )
    assert CHAT.decode(raw).model == "m"


def suite(prefix: str) -> list[Path]:
    return sorted(SUITE.glob(f"{prefix}_*.json")) if SUITE.is_dir() else []


@pytest.mark.skipif(not SUITE.is_dir(), reason="the JSON parsing suite is not here")
@pytest.mark.parametrize("prefix", ["n", "y", "i"])
def test_the_json_parsing_suite_never_breaks_a_decoder(prefix: str) -> None:
    """Each file as a field's value: malformed ones are refused, well-formed ones read."""
    files = suite(prefix)
    assert len(files) > 20
    for path in files:
        raw = b'{"model": "m", "messages": [], "functions": [' + path.read_bytes() + b"]}"
        if prefix == "n" and path.name not in WELL_FORMED_INSIDE:
            assert denied(CHAT, raw).code in (Code.INVALID_JSON, Code.INVALID_REQUEST), path.name
        elif prefix == "y":
            assert CHAT.decode(raw).model == "m", path.name
        else:
            with contextlib.suppress(Denied):
                CHAT.decode(raw)


WELL_FORMED_INSIDE = {"n_single_space.json", "n_structure_no_data.json"}
"""Nothing at all is no JSON text, but makes an empty list."""
