"""What says that a model was made for embeddings; whatever else would change vectors is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from inference_engine.execution.models.embedding_files import EmbeddingFiles, Pooling, load_embedding_files
from inference_engine.execution.models.model_json import ModelFilesError
from tiny_embedders import NORMALIZE, POOLING, TRANSFORMER, make_embedder, write


@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("is_normalized", [True, False])
def test_the_layout_is_read(pooling: Pooling, is_normalized: bool, tmp_path: Path) -> None:
    make_embedder(tmp_path, pooling, is_normalized=is_normalized)
    assert load_embedding_files(tmp_path) == EmbeddingFiles(pooling, is_normalized, None)


@pytest.mark.parametrize(("name", "pooling"), [("mean", Pooling.MEAN), ("lasttoken", Pooling.LAST_TOKEN)])
def test_newer_files_name_the_mode_and_have_other_types(name: str, pooling: Pooling, tmp_path: Path) -> None:
    kinds = ("Transformer", "Pooling", "Normalize")
    prefix = "sentence_transformers.sentence_transformer.modules"
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": index, "path": path, "type": f"{prefix}.{kind.lower()}.{kind}"}
        for index, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write(tmp_path / "modules.json", modules)
    write(tmp_path / "1_Pooling" / "config.json", {"embedding_dimension": 64, "pooling_mode": name})
    assert load_embedding_files(tmp_path) == EmbeddingFiles(pooling, True, None)


def test_without_modules_it_generates_text(tmp_path: Path) -> None:
    assert load_embedding_files(tmp_path) is None


def test_the_longest_text_and_prompts_that_a_client_may_use(tmp_path: Path) -> None:
    make_embedder(tmp_path, "lasttoken")
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 77, "do_lower_case": False})
    prompts = {"query": "Instruct: find\nQuery:", "document": ""}
    write(tmp_path / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    found = load_embedding_files(tmp_path)
    assert found is not None and found.max_tokens == 77
    plain = {"prompts": prompts, "default_prompt_name": "document"}
    write(tmp_path / "config_sentence_transformers.json", plain)
    assert load_embedding_files(tmp_path) is not None


PROMPTS = "config_sentence_transformers.json"
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "cls_token"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "max_tokens"),
        ("1_Pooling/config.json", {f"pooling_mode_{mode}": True for mode in Pooling}, "mean_tokens"),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, "weightedmean"),
        ("1_Pooling/config.json", {}, "nothing"),
        ("modules.json", [TRANSFORMER, POOLING, DENSE, NORMALIZE], "Dense"),
        ("modules.json", [POOLING], "Pooling"),
        ("modules.json", [{**TRANSFORMER, "path": "0_Transformer"}, POOLING], "folder itself"),
        ("modules.json", {"no": "list"}, "modules.json"),
        ("modules.json", [1], "modules.json"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        (PROMPTS, {"prompts": {"q": "Q: "}, "default_prompt_name": "q"}, "prompt 'q'"),
        ("tokenizer_config.json", {"add_eos_token": True, "eos_token": "</s>"}, "</s>"),
    ],
)
def test_what_is_not_served_is_named(file: str, content: Any, named: str, tmp_path: Path) -> None:
    make_embedder(tmp_path, "lasttoken")
    write(tmp_path / "tokenizer.json", {"post_processor": None})
    write(tmp_path / file, content)
    with pytest.raises(ModelFilesError, match=named):
        load_embedding_files(tmp_path)


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    make_embedder(tmp_path, "lasttoken")
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(ModelFilesError, match="is not JSON"):
        load_embedding_files(tmp_path)
