"""Token ids to text, a few at a time."""

from codecs import utf_8_decode
from collections.abc import Collection, Iterable
from copy import copy


class Vocabulary:
    """What each token id reads as. Shared by all streams of a model."""

    def __init__(self, table: list[bytes], special_ids: Collection[int]) -> None:
        self.all_bytes = table
        self.visible_bytes = list(table)
        for token_id in special_ids:
            self.visible_bytes[token_id] = b""
        self.all_text = [_whole_text(data) for data in self.all_bytes]
        self.visible_text = [_whole_text(data) for data in self.visible_bytes]
        self.longest = max((len(data) for data in table), default=0)

    def showing(self, token_ids: Collection[int]) -> "Vocabulary":
        """The same, but these special tokens are visible text."""
        hidden = [
            token_id for token_id in token_ids if self.visible_bytes[token_id] != self.all_bytes[token_id]
        ]
        if not hidden:
            return self
        shown = copy(self)
        shown.visible_bytes, shown.visible_text = list(self.visible_bytes), list(self.visible_text)
        for token_id in hidden:
            shown.visible_bytes[token_id] = self.all_bytes[token_id]
            shown.visible_text[token_id] = self.all_text[token_id]
        return shown

    def decode(self, token_ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        table = self.visible_bytes if skip_special_tokens else self.all_bytes
        return b"".join(map(table.__getitem__, token_ids)).decode("utf-8", "replace")


class IncrementalDecoder:
    """The pieces joined, `finish` included, equal the decode of all ids at once.

    Bytes that may still become a character are held back; bytes that can't any more become U+FFFD, as in a
    decode of the whole.
    """

    def __init__(self, vocabulary: Vocabulary, *, skip_special_tokens: bool = True) -> None:
        self._text = vocabulary.visible_text if skip_special_tokens else vocabulary.all_text
        self._bytes = vocabulary.visible_bytes if skip_special_tokens else vocabulary.all_bytes
        self._pending = b""

    def push(self, token_id: int) -> str:
        if not self._pending:
            text = self._text[token_id]
            if text is not None:
                return text
        data = self._pending + self._bytes[token_id]
        text, num_used = utf_8_decode(data, "replace", False)
        self._pending = data[num_used:]
        return text

    def finish(self) -> str:
        text = self._pending.decode("utf-8", "replace")
        self._pending = b""
        return text


def _whole_text(data: bytes) -> str | None:
    """None for bytes that are no text by themselves."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
