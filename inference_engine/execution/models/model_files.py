"""What a model directory says about its model. Imports no torch: a fake engine and the tests read it too."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from inference_engine.contract.events import Embedding

from .embedding_files import EmbeddingFiles, load_embedding_files
from .model_json import ModelFilesError, parse_json, read_bytes, read_json, read_optional_json
from .weight_files import find_weight_files, weights_revision

TEMPLATE_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")
TURN_END_TOKENS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eot|>",
    "<end_of_turn>",
    "<|END_OF_TURN_TOKEN|>",
    "<|return|>",
)
"""Ends of an assistant's turn. They end generation where the model's own template writes them."""
DEFAULTS = ("temperature", "top_p", "top_k")


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    directory: Path
    name: str
    config: dict[str, Any]
    context_length: int
    vocab_size: int
    tokenizer_json: bytes
    tokenizer_hash: str
    chat_template: str | None
    template_tokens: dict[str, str]
    special_ids: list[int]
    end_ids: list[int]
    generation_defaults: dict[str, float]
    weight_files: list[Path]
    revision: str
    created: int
    """Unix seconds: when the weights were last written."""
    embedding: EmbeddingFiles | None
    """None: the model generates text."""

    def description_fields(self) -> dict[str, Any]:
        """This model's part of the contract's Description."""
        return {
            "model": self.name,
            "revision": self.revision,
            "tokenizer_json": self.tokenizer_json,
            "tokenizer_hash": self.tokenizer_hash,
            "chat_template": self.chat_template,
            "template_tokens": self.template_tokens,
            "special_ids": self.special_ids,
            "end_ids": self.end_ids,
            "generation_defaults": self.generation_defaults,
            "context_length": self.context_length,
            "vocab_size": self.vocab_size,
            "created": self.created,
            "embedding": self._embedding(),
        }

    def _embedding(self) -> Embedding | None:
        if self.embedding is None:
            return None
        return Embedding(size=self.vector_size, is_normalized=self.embedding.is_normalized)

    @property
    def vector_size(self) -> int:
        """Numbers in a vector of a model made for embeddings. Raises ModelFilesError."""
        return _positive(self.config, "hidden_size")

    def limited_to(self, context_length: int | None) -> Self:
        """The same with a shorter context, if one is given. Raises ModelFilesError for a longer one."""
        if context_length is None:
            return self
        if context_length > self.context_length:
            made_for = self.context_length
            raise ModelFilesError(f"the model was made for {made_for} tokens, not {context_length}")
        return replace(self, context_length=context_length)


def load_model_files(directory: Path) -> ModelFiles:
    """Raises ModelFilesError."""
    directory = directory.resolve()
    config = read_json(directory / "config.json")
    tokenizer_json = read_bytes(directory / "tokenizer.json")
    added = _added_tokens(tokenizer_json)
    tokenizer_config = read_json(directory / "tokenizer_config.json")
    generation = read_optional_json(directory / "generation_config.json")
    chat_template = _chat_template(directory, tokenizer_config)
    template_tokens = _template_tokens(tokenizer_config)
    weight_files = find_weight_files(directory)
    embedding = load_embedding_files(directory)
    return ModelFiles(
        directory=directory,
        name=directory.name,
        config=config,
        context_length=_context_length(config, embedding),
        vocab_size=_positive(config, "vocab_size"),
        tokenizer_json=tokenizer_json,
        tokenizer_hash=hashlib.sha256(tokenizer_json).hexdigest(),
        chat_template=chat_template,
        template_tokens=template_tokens,
        special_ids=sorted(token["id"] for token in added if token.get("special")),
        end_ids=_end_ids(config, generation, added, template_tokens, chat_template),
        generation_defaults=_generation_defaults(generation),
        weight_files=weight_files,
        revision=weights_revision(weight_files),
        created=int(max(path.stat().st_mtime for path in weight_files)),
        embedding=embedding,
    )


def _context_length(config: dict[str, Any], embedding: EmbeddingFiles | None) -> int:
    num_positions = _positive(config, "max_position_embeddings")
    most = embedding.max_tokens if embedding is not None else None
    return min(num_positions, most or num_positions)


def _positive(config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise ModelFilesError(f"config.json: {key} is {value!r}, not a positive integer")
    return value


def _added_tokens(tokenizer_json: bytes) -> list[dict[str, Any]]:
    tokenizer = parse_json(tokenizer_json, "tokenizer.json")
    added = tokenizer.get("added_tokens", [])
    shaped = isinstance(added, list) and all(
        isinstance(token, dict) and isinstance(token.get("id"), int) and isinstance(token.get("content"), str)
        for token in added
    )
    if not shaped or not isinstance(tokenizer.get("model"), dict):
        raise ModelFilesError("tokenizer.json has not the shape of a tokenizers file")
    return list(added)


def _chat_template(directory: Path, tokenizer_config: dict[str, Any]) -> str | None:
    """The file chat_template.jinja wins over the field; of several named templates, the one named default."""
    path = directory / "chat_template.jinja"
    if path.exists():
        return read_bytes(path).decode("utf-8", "replace")
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _template_tokens(tokenizer_config: dict[str, Any]) -> dict[str, str]:
    """Each value is a string, or the object form of an added token."""
    found: dict[str, str] = {}
    for name in TEMPLATE_TOKENS:
        value = tokenizer_config.get(name)
        content = value.get("content") if isinstance(value, dict) else value
        if isinstance(content, str):
            found[name] = content
    return found


def _end_ids(
    config: dict[str, Any],
    generation: dict[str, Any],
    added: list[dict[str, Any]],
    template_tokens: dict[str, str],
    chat_template: str | None,
) -> list[int]:
    ids = {token["content"]: token["id"] for token in added}
    names = [token for token in TURN_END_TOKENS if token in (chat_template or "")]
    names.append(template_tokens.get("eos_token", ""))
    ends = {ids[name] for name in names if name in ids}
    return sorted(ends | _eos_ids(config) | _eos_ids(generation))


def _eos_ids(config: dict[str, Any]) -> set[int]:
    value = config.get("eos_token_id")
    values = value if isinstance(value, list) else [value]
    return {each for each in values if isinstance(each, int)}


def _generation_defaults(generation: dict[str, Any]) -> dict[str, float]:
    values = {name: generation.get(name) for name in DEFAULTS}
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
