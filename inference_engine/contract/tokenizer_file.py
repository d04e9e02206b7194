"""The tokenizer's file inside a Description: as it is, or packed where it would fill a frame.

A plain one is read by gateways of any version. A packed one only ever stands for what no frame could hold
before, so a gateway that is too old for it loses nothing: it finds no tokenizer and says so.
"""

import zlib

from msgspec import structs

from .events import Description
from .limits import MAX_PLAIN_TOKENIZER_BYTES, MAX_TOKENIZER_BYTES

_LEVEL = 6


def packed(description: Description) -> Description:
    """Fit for a frame, if anything is."""
    if len(description.tokenizer_json) <= MAX_PLAIN_TOKENIZER_BYTES:
        return description
    small = zlib.compress(description.tokenizer_json, _LEVEL)
    return structs.replace(description, tokenizer_json=b"", tokenizer_zlib=small)


def tokenizer_of(description: Description) -> bytes:
    """The file, however it travelled. Unpacking takes tenths of a second: not for an event loop. Raises
    ValueError where it isn't what `packed` made, or larger than any tokenizer."""
    if not description.tokenizer_zlib:
        return description.tokenizer_json
    unpacking = zlib.decompressobj()
    try:
        whole = unpacking.decompress(description.tokenizer_zlib, MAX_TOKENIZER_BYTES)
    except zlib.error as error:
        raise ValueError(f"the packed tokenizer can't be read: {error}") from error
    if not unpacking.eof:
        raise ValueError(f"the packed tokenizer is cut off, or of more than {MAX_TOKENIZER_BYTES} bytes")
    return whole
