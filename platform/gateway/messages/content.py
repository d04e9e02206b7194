"""The content blocks of a message as they grow, and the events that tell of it."""

import json
from typing import Any

from gateway.runs.chunks import encode
from gateway.runs.event_answer import Event
from text.tools.events import CallArguments, CallBegin, ParsedPart


def event(kind: str, **fields: object) -> Event:
    return Event(kind, encode({"type": kind, **fields}))


class ContentBlocks:
    """At most one block is open, the last one."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self._pieces: list[str] = []
        self._is_open = False

    def add(self, part: ParsedPart) -> list[Event]:
        match part:
            case str():
                events = [] if self._is_in_text else self._open({"type": "text", "text": ""})
                self._pieces.append(part)
                return [*events, self._delta({"type": "text_delta", "text": part})]
            case CallBegin():
                return self._open({"type": "tool_use", "id": part.id, "name": part.name, "input": {}})
            case CallArguments():
                self._pieces.append(part.text)
                return [self._delta({"type": "input_json_delta", "partial_json": part.text})]
            case _:
                return self.close()

    @property
    def _is_in_text(self) -> bool:
        return self._is_open and self.blocks[-1]["type"] == "text"

    def _open(self, block: dict[str, Any]) -> list[Event]:
        events = self.close()
        self.blocks.append(block)
        self._is_open = True
        return [*events, event("content_block_start", index=len(self.blocks) - 1, content_block=block)]

    def _delta(self, delta: dict[str, str]) -> Event:
        return event("content_block_delta", index=len(self.blocks) - 1, delta=delta)

    def close(self) -> list[Event]:
        if not self._is_open:
            return []
        block, text = self.blocks[-1], "".join(self._pieces)
        block |= {"text": text} if block["type"] == "text" else {"input": _input(text)}
        self._is_open, self._pieces = False, []
        return [event("content_block_stop", index=len(self.blocks) - 1)]


def _input(arguments: str) -> dict[str, Any]:
    """Empty where the answer was cut in the middle of it."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
