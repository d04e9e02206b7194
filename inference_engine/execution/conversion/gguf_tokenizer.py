"""tokenizer.json and its companions from the tokenizer fields of a GGUF file."""

from typing import Any

from gguf import GGUFReader, TokenType

from .conversion_error import ConversionError
from .gguf_weights import metadata_value

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "gpt-2": _BYTE_LEVEL,
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
}


def tokenizer_json(reader: GGUFReader) -> dict[str, Any]:
    """A byte-level BPE tokenizer. Raises ConversionError for the kinds not known here."""
    model, split = (
        metadata_value(reader, "tokenizer.ggml.model"),
        metadata_value(reader, "tokenizer.ggml.pre"),
    )
    if model != "gpt2" or split not in _PRE_TOKENIZERS:
        raise ConversionError(f"GGUF tokenizer {model!r} with pre-tokenizer {split!r} is not supported")
    tokens = metadata_value(reader, "tokenizer.ggml.tokens")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokens, metadata_value(reader, "tokenizer.ggml.token_type")),
        "normalizer": None,
        "pre_tokenizer": _PRE_TOKENIZERS[split],
        "post_processor": _post_processor(reader, tokens),
        "decoder": _BYTE_LEVEL | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in metadata_value(reader, "tokenizer.ggml.merges")],
        },
    }


def tokenizer_config(reader: GGUFReader) -> dict[str, Any]:
    tokens = metadata_value(reader, "tokenizer.ggml.tokens")
    named = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: metadata_value(reader, f"tokenizer.ggml.{key}_token_id", -1) for name, key in named.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": int(metadata_value(reader, "llama.context_length")),
        "clean_up_tokenization_spaces": False,
        "chat_template": metadata_value(reader, "tokenizer.chat_template"),
        **{name: tokens[token_id] for name, token_id in ids.items() if token_id >= 0},
    }


def _added_tokens(tokens: list[str], kinds: list[int]) -> list[dict[str, Any]]:
    special = {int(TokenType.CONTROL), int(TokenType.UNKNOWN)}
    added = special | {int(TokenType.USER_DEFINED)}
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in special,
        }
        for token_id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in added
    ]


def _post_processor(reader: GGUFReader, tokens: list[str]) -> dict[str, Any] | None:
    field = reader.get_field("tokenizer.ggml.add_bos_token")
    if field is None or not field.contents():
        return None
    bos_id = int(metadata_value(reader, "tokenizer.ggml.bos_token_id"))
    bos = tokens[bos_id]
    first, second = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    start = {"SpecialToken": {"id": bos, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [start, first],
        "pair": [start, first, second],
        "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}},
    }
