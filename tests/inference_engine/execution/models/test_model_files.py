"""What a model directory says, and what it says when something is wrong with it."""

import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_engine.contract.events import Description
from inference_engine.execution.models.model_files import load_model_files
from inference_engine.execution.models.model_json import ModelFilesError
from inference_engine.execution.models.weight_files import SIDECAR

SERVING: dict[str, Any] = {
    "max_request_tokens": 100, "max_running": 4, "dtype": "float32", "backend": "reference",
    "batch_invariant": True, "fingerprint": "f",
}  # fmt: skip


def safetensors(data: bytes) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    root = tmp_path / "some-model"
    root.mkdir()
    added = [
        {"id": 10, "content": "<|im_end|>", "special": True},
        {"id": 11, "content": "<s>", "special": True},
        {"id": 12, "content": "<tool_call>", "special": False},
        {"id": 13, "content": "<|eot_id|>", "special": True},
        {"id": 14, "content": "</s>", "special": True},
    ]
    write(root, "config.json", {"max_position_embeddings": 128, "vocab_size": 20, "eos_token_id": 3})
    write(root, "tokenizer.json", {"added_tokens": added, "model": {"type": "BPE"}})
    write(root, "tokenizer_config.json", {
        "chat_template": "{{ messages }}<|im_end|>", "bos_token": {"content": "<s>"}, "eos_token": "</s>",
        "unk_token": None,
    })  # fmt: skip
    write(root, "generation_config.json", {"eos_token_id": [4, 5], "temperature": 0.6, "top_k": 20})
    (root / "model.safetensors").write_bytes(safetensors(b"weights"))
    return root


def write(root: Path, name: str, value: object) -> None:
    (root / name).write_text(json.dumps(value))


def change(root: Path, name: str, **fields: object) -> None:
    write(root, name, json.loads((root / name).read_text()) | fields)


def test_everything_a_gateway_needs_is_there(directory: Path) -> None:
    files = load_model_files(directory)
    assert (files.name, files.context_length, files.vocab_size) == ("some-model", 128, 20)
    assert files.template_tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert files.special_ids == [10, 11, 13, 14]
    assert files.generation_defaults == {"temperature": 0.6, "top_k": 20.0}
    assert files.tokenizer_hash == hashlib.sha256((directory / "tokenizer.json").read_bytes()).hexdigest()
    description = Description(**files.description_fields(), **SERVING)
    assert (description.model, description.revision) == (files.name, files.revision)
    assert description.created == files.created > 0


def test_ends_are_those_of_configs_tokenizer_and_template(directory: Path) -> None:
    """<|eot_id|> is special, but this template never writes it."""
    assert load_model_files(directory).end_ids == [3, 4, 5, 10, 14]


def test_template_file_wins_over_the_field(directory: Path) -> None:
    (directory / "chat_template.jinja").write_text("{{ messages }}<|eot_id|>")
    files = load_model_files(directory)
    assert files.chat_template == "{{ messages }}<|eot_id|>"
    assert files.end_ids == [3, 4, 5, 13, 14]


def test_default_one_of_several_named_templates_is_taken(directory: Path) -> None:
    named = [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
    change(directory, "tokenizer_config.json", chat_template=named)
    assert load_model_files(directory).chat_template == "yes"


def test_generation_config_and_template_may_be_absent(directory: Path) -> None:
    (directory / "generation_config.json").unlink()
    change(directory, "tokenizer_config.json", chat_template=None)
    files = load_model_files(directory)
    assert (files.chat_template, files.generation_defaults, files.end_ids) == (None, {}, [3, 14])


def test_revision_follows_the_weights_and_nothing_else(directory: Path) -> None:
    first = load_model_files(directory).revision
    change(directory, "tokenizer_config.json", eos_token="<s>")
    assert load_model_files(directory).revision == first
    (directory / "model.safetensors").write_bytes(safetensors(b"WEIGHTS!"))
    assert load_model_files(directory).revision != first


def test_revision_is_remembered_and_a_damaged_memory_is_not_believed(directory: Path) -> None:
    revision = load_model_files(directory).revision
    sidecar = directory / SIDECAR
    change(directory, SIDECAR, revision="remembered")
    assert load_model_files(directory).revision == "remembered"
    for damage in ("{", "[]", '{"files": {}, "revision": "x"}'):
        sidecar.write_text(damage)
        assert load_model_files(directory).revision == revision


def test_second_weight_file_belongs_to_the_revision(directory: Path) -> None:
    first = load_model_files(directory).revision
    (directory / "more.safetensors").write_bytes(safetensors(b"x"))
    files = load_model_files(directory)
    assert files.revision != first
    assert [path.name for path in files.weight_files] == ["model.safetensors", "more.safetensors"]


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [None, b"{", b"[]", b"\xff", b"[" * 100_000])
def test_missing_or_malformed_file_is_named(directory: Path, name: str, content: bytes | None) -> None:
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    with pytest.raises(ModelFilesError, match=name):
        load_model_files(directory)


@pytest.mark.parametrize("field", ["max_position_embeddings", "vocab_size"])
@pytest.mark.parametrize("value", [None, 0, "many"])
def test_config_without_its_sizes_is_refused(directory: Path, field: str, value: object) -> None:
    change(directory, "config.json", **{field: value})
    with pytest.raises(ModelFilesError, match=field):
        load_model_files(directory)


@pytest.mark.parametrize("added", [7, [7], [{"id": "x", "content": "y"}], [{"id": 1}]])
def test_tokenizer_of_another_shape_is_refused(directory: Path, added: object) -> None:
    change(directory, "tokenizer.json", added_tokens=added)
    with pytest.raises(ModelFilesError, match=r"tokenizer\.json"):
        load_model_files(directory)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"\xff" * 64,
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 9) + b'{"w": {}}',
        safetensors(b"weights")[:-1],
        safetensors(b"weights") + b"more",
    ],
)
def test_damaged_weights_are_refused(directory: Path, content: bytes) -> None:
    (directory / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelFilesError, match=r"model\.safetensors"):
        load_model_files(directory)


def test_directory_without_weights_is_refused(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    with pytest.raises(ModelFilesError, match="safetensors"):
        load_model_files(directory)


def test_real_model_ends_at_the_end_of_a_turn(smollm2_dir: Path) -> None:
    files = load_model_files(smollm2_dir)
    assert (files.end_ids, files.context_length, files.vocab_size) == ([2], 8192, 49152)
    assert files.special_ids == list(range(17))


def test_reading_loads_no_torch() -> None:
    script = "import sys, inference_engine.execution.models.model_files; print('torch' in sys.modules)"
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False", done.stderr


def test_a_context_may_be_shortened_and_never_stretched(directory: Path) -> None:
    files = load_model_files(directory)
    assert files.limited_to(None) == files
    assert files.limited_to(100).context_length == 100
    with pytest.raises(ModelFilesError, match="made for 128 tokens, not 129"):
        files.limited_to(129)
