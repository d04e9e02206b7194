"""A tokenizer.json in which no text spells a control token.

Where a grammar forces text, llguidance tokenizes that text and allows the first token only. Its tokenizer
takes `<|im_start|>` inside it for the control token, whose bytes the grammar then doesn't accept, and
`<|im_end|>` for an end of the output. Under names that nobody can guess they are out of reach of text, and
keep their ids.
"""

import json
import secrets
from collections.abc import Collection, Mapping
from typing import Any


def with_unspellable(tokenizer_json: bytes, control_ids: Collection[int]) -> bytes:
    """The same tokenizer, its added tokens of these ids renamed, in the model's own vocabulary too."""
    tokenizer = json.loads(tokenizer_json)
    names: dict[str, str] = {}
    nonce = secrets.token_hex(16)
    for token in tokenizer.get("added_tokens") or ():
        if token["id"] in control_ids:
            names[token["content"]] = f"<|{nonce}-{token['id']}|>"
            token.update(content=names[token["content"]], special=True)
    _rename(tokenizer["model"], names)
    return json.dumps(tokenizer, ensure_ascii=False).encode()


def _rename(model: dict[str, Any], names: Mapping[str, str]) -> None:
    vocab = model["vocab"]
    if isinstance(vocab, dict):
        model["vocab"] = {names.get(piece, piece): id_ for piece, id_ in vocab.items()}
    else:
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocab]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    if "merges" in model:
        model["merges"] = [merge for merge in model["merges"] if _result(merge) not in names]


def _result(merge: str | list[str]) -> str:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left + right
