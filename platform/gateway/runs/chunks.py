"""Server-sent events of one answer, joined from parts that were encoded once."""

import msgspec

_encoder = msgspec.json.Encoder()

NULL = b"null"
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"


def encode(value: object) -> bytes:
    """One line of JSON, also for clients that take Unicode's other line ends for ends of an event's line."""
    data = _encoder.encode(value)
    return data if data.isascii() else _without_line_ends(data)


def _without_line_ends(data: bytes) -> bytes:
    for character in "\u0085\u2028\u2029":
        data = data.replace(character.encode(), b"\\u%04x" % ord(character))
    return data


class ChunkWriter:
    """Builds `data: {...}` lines that share id, object, created, model and system_fingerprint."""

    def __init__(self, identity: dict[str, object], *, include_usage: bool) -> None:
        self._open = b"data: " + encode(identity)[:-1] + b',"choices":['
        self._close = (b',"usage":null' if include_usage else b"") + b"}\n\n"

    def choice(
        self,
        index: int,
        content: bytes,
        *,
        logprobs: bytes = NULL,
        finish_reason: bytes = NULL,
        extra: bytes = b"",
        extra_of_chunk: bytes = b"",
    ) -> bytes:
        """`content` is the member that differs by endpoint; the extras are members with a leading comma."""
        return b"".join(
            (
                self._open,
                b'{"index":%d,' % index,
                content,
                b',"logprobs":',
                logprobs,
                b',"finish_reason":',
                finish_reason,
                extra,
                b"}]",
                extra_of_chunk,
                self._close,
            )
        )

    def usage(self, usage: dict[str, object]) -> bytes:
        return self._open + b'],"usage":' + encode(usage) + b"}\n\n"
