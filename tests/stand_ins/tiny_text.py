"""Small tokenizers of both families that are served, and Descriptions around them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inference_engine.contract.events import Description
from inference_engine.execution.models.model_files import load_model_files

SHARED_DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def byte_alphabet() -> list[str]:
    """GPT-2's character for each of the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters, extra = [], 256
    for byte in range(256):
        characters.append(chr(byte) if byte in printable else chr(extra))
        extra += byte not in printable
    return characters


def byte_level_tokenizer(
    special: Sequence[str] = CHATML_TOKENS,
    *,
    ordinary: Sequence[str] = (),
    merges: Sequence[tuple[str, str]] = (("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o")),
    start_token: str | None = None,
    ignore_merges: bool = False,
) -> bytes:
    """`special` and `ordinary` are added tokens; ids: 256 bytes, merges, then added tokens."""
    tokens = [*byte_alphabet(), *(left + right for left, right in merges), *special, *ordinary]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return _tokenizer(
        added=[*_added(vocab, special, True), *_added(vocab, ordinary, False)],
        model=_bpe(vocab, merges, ignore_merges=ignore_merges),
        pre_tokenizer=level,
        decoder=level,
        post_processor=None if start_token is None else _start_with(start_token, vocab[start_token]),
    )


def sentencepiece_tokenizer(special: Sequence[str] = ("<s>", "</s>", "[INST]", "[/INST]")) -> bytes:
    """Llama-2 like: spaces are U+2581, one is put in front, unknown characters fall back to bytes."""
    letters = [chr(code) for code in range(33, 127)]
    merges = [("\u2581", "h"), ("\u2581h", "i"), ("o", "k")]
    tokens = ["<unk>", *special, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *letters]
    tokens += [left + right for left, right in merges]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    replace = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    return _tokenizer(
        added=_added(vocab, ["<unk>", *special], True),
        model=_bpe(vocab, merges) | {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
        pre_tokenizer={
            "type": "Metaspace",
            "replacement": "\u2581",
            "prepend_scheme": "first",
            "split": False,
        },
        decoder={
            "type": "Sequence",
            "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}, strip],
        },
        post_processor=_start_with("<s>", vocab["<s>"]),
    )


def description(tokenizer_json: bytes, template: str | None = CHATML, **changes: Any) -> Description:
    added = json.loads(tokenizer_json)["added_tokens"]
    fields: dict[str, Any] = {
        "model": "tiny",
        "revision": "r",
        "tokenizer_json": tokenizer_json,
        "tokenizer_hash": hashlib.sha256(tokenizer_json).hexdigest(),
        "chat_template": template,
        "special_ids": [token["id"] for token in added if token["special"]],
        "context_length": 4096,
        "vocab_size": max((token["id"] for token in added), default=300) + 1,
    }
    return Description(**{**_SERVING, **fields, **changes})


def description_of_files(directory: Path) -> Description:
    return Description(**{**_SERVING, **load_model_files(directory).description_fields()})


def chat_template_of(directory: Path) -> str:
    template = load_model_files(directory).chat_template
    assert template is not None
    return template


_SERVING: dict[str, Any] = {
    "max_request_tokens": 4096,
    "max_running": 4,
    "dtype": "float32",
    "backend": "reference",
    "batch_invariant": True,
    "fingerprint": "f",
}


def _tokenizer(added: list[dict[str, Any]], **parts: Any) -> bytes:
    whole = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None}
    return json.dumps({**whole, "added_tokens": added, **parts}).encode()


def _bpe(
    vocab: dict[str, int], merges: Iterable[tuple[str, str]], ignore_merges: bool = False
) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": vocab,
        "merges": [list(merge) for merge in merges],
    }


def _added(vocab: dict[str, int], names: Iterable[str], special: bool) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": vocab[name], "content": name, **flags} for name in names]


def _start_with(token: str, token_id: int) -> dict[str, Any]:
    start = {"SpecialToken": {"id": token, "type_id": 0}}
    first, second = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [start, first],
        "pair": [start, first, second],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }
