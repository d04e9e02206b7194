"""Text to token ids, where only the chat template's own words can become control tokens.

The tokenizer used here is the model's own, except that its added tokens (special ones and others, such as
`<tool_call>`) go by secret names drawn at start-up. Where the template itself wrote a token's public name,
the secret one is put in its place; a client can spell the public names only, and those are ordinary text. So
pieces are split, normalised and merged exactly as the model's tokenizer does it. Added tokens of nothing but
white space carry no authority and keep their names.
"""

import json
import re
import secrets
from typing import Any

from tokenizers import Tokenizer

from .errors import ModelTextError
from .tracked_text import TrackedText


class PromptEncoder:
    def __init__(self, tokenizer_json: bytes) -> None:
        """Raises ModelTextError."""
        tokenizer = json.loads(tokenizer_json)
        self._secret_names = _secret_names(tokenizer)
        self._public_name = re.compile(
            "|".join(re.escape(name) for name in sorted(self._secret_names, key=len, reverse=True)) or r"(?!)"
        )
        self._tokenizer = _renamed(tokenizer, self._secret_names)

    def encode_plain(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """A completion's prompt: all of it is text; a start token is added if the tokenizer adds one."""
        return self._encode(text, add_special_tokens=add_special_tokens)

    def encode_rendered(self, text: TrackedText) -> list[int]:
        """A rendered chat template, which writes its start token itself."""
        return self._encode(self._with_secret_names(text), add_special_tokens=False)

    def _encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Batch encoding, because that one releases the GIL."""
        batch = self._tokenizer.encode_batch_fast([str.__str__(text)], add_special_tokens=add_special_tokens)
        return list(batch[0].ids)

    def _with_secret_names(self, text: TrackedText) -> str:
        pieces: list[str] = []
        position = 0
        for start, end in text.spans:
            for match in self._public_name.finditer(text, start, end):
                pieces += [
                    str.__getitem__(text, slice(position, match.start())),
                    self._secret_names[match[0]],
                ]
                position = match.end()
        pieces.append(str.__getitem__(text, slice(position, None)))
        return "".join(pieces)


def _secret_names(tokenizer: dict[str, Any]) -> dict[str, str]:
    nonce = secrets.token_hex(16)
    names = [token["content"] for token in tokenizer.get("added_tokens") or []]
    return {name: f"<{nonce}-{index}>" for index, name in enumerate(names) if name.strip()}


def _renamed(tokenizer: dict[str, Any], names: dict[str, str]) -> Tokenizer:
    """Raises ModelTextError where a token would not keep its id."""
    added = [
        token | {"content": names.get(token["content"], token["content"])}
        for token in tokenizer.get("added_tokens") or []
    ]
    changed = tokenizer | {
        "added_tokens": added,
        "model": _renamed_model(tokenizer["model"], names),
        "truncation": None,
        "padding": None,
    }
    renamed = Tokenizer.from_str(json.dumps(changed))
    for token in added:
        if renamed.token_to_id(token["content"]) != token["id"]:
            raise ModelTextError(f"the added token with id {token['id']} can't be told from text")
    return renamed


def _renamed_model(model: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Ordinary vocabularies list added tokens too, and must not offer them to plain text either."""
    vocab = model["vocab"]
    changed: dict[str, Any] = model | {"vocab": _renamed_vocab(vocab, names)}
    if model.get("unk_token") in names:
        changed["unk_token"] = names[model["unk_token"]]
    if isinstance(model.get("merges"), list):
        changed["merges"] = [merge for merge in model["merges"] if not _touches(merge, names)]
    return changed


def _renamed_vocab(vocab: Any, names: dict[str, str]) -> Any:
    if isinstance(vocab, dict):
        return {names.get(token, token): token_id for token, token_id in vocab.items()}
    return [[names.get(token, token), score] for token, score in vocab]


def _touches(merge: Any, names: dict[str, str]) -> bool:
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left in names or right in names or left + right in names
