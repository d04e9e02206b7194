"""Tiny random models that say they were made for embeddings, in the layout of sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import transformers

from tiny_families import FAMILIES
from tiny_models import SHAPE, save_module

TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
MODES = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
END_TOKEN = "<|endoftext|>"
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}


def save_embedder(
    folder: Path,
    family: str,
    mode: str,
    *,
    is_normalized: bool = True,
    is_bare: bool = False,
    **changes: object,
) -> Path:
    """A family of tiny_families whose texts are pooled by `mode`; bare: its weights have no head, nor their
    names the prefix that goes with one."""
    prefix, own = FAMILIES[family]
    kind = "Model" if is_bare else "ForCausalLM"
    config = getattr(transformers, f"{prefix}Config")(**{**SHAPE, **own, **changes})
    save_module(getattr(transformers, f"{prefix}{kind}")(config), folder)
    return make_embedder(folder, mode, is_normalized=is_normalized)


def make_embedder(folder: Path, mode: str, *, is_normalized: bool = True) -> Path:
    """What stands beside the weights."""
    modules = [TRANSFORMER, POOLING, NORMALIZE] if is_normalized else [TRANSFORMER, POOLING]
    write(folder / "modules.json", modules)
    flags = {
        f"pooling_mode_{name}": name == mode
        for name in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    }
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": SHAPE["hidden_size"], **flags})
    return folder


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def save_tokenizer(folder: Path, source: Path) -> Path:
    """Another model's, with an end token behind every text."""
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    end = next(token["id"] for token in tokenizer["added_tokens"] if token["content"] == END_TOKEN)
    text, closing = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": END_TOKEN, "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [text, closing],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}, closing],
        "special_tokens": {END_TOKEN: {"id": END_TOKEN, "ids": [end], "tokens": [END_TOKEN]}},
    }
    write(folder / "tokenizer.json", tokenizer)
    write(folder / "tokenizer_config.json", {"eos_token": END_TOKEN, "add_eos_token": True})
    return folder
