"""Input items: what a client sends in any of several shapes, in the one shape that is kept and shown."""

from typing import Any, Literal

from msgspec import Struct

from gateway.responses.ids import item_id
from gateway.transport.strict_json import checked_part
from inference_engine.contract.codes import Code
from tenants.errors import Denied

Item = dict[str, Any]
Status = Literal["in_progress", "completed", "incomplete"]


class MessageItem(Struct, forbid_unknown_fields=True, kw_only=True):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[dict[str, Any]]
    type: str | None = None
    id: str | None = None
    status: Status | None = None
    phase: str | None = None


class FunctionCallItem(Struct, forbid_unknown_fields=True, kw_only=True):
    call_id: str
    name: str
    arguments: str
    type: str
    id: str | None = None
    status: Status | None = None


class FunctionCallOutputItem(Struct, forbid_unknown_fields=True, kw_only=True):
    call_id: str
    output: str | list[dict[str, Any]]
    type: str
    id: str | None = None
    status: Status | None = None


class ItemReference(Struct, forbid_unknown_fields=True, kw_only=True):
    id: str
    type: str | None = None


class TextPart(Struct, forbid_unknown_fields=True, kw_only=True):
    type: str
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class RefusalPart(Struct, forbid_unknown_fields=True, kw_only=True):
    type: str
    refusal: str


AnyItem = MessageItem | FunctionCallItem | FunctionCallOutputItem | ItemReference
_KINDS: dict[str, type[AnyItem]] = {
    "message": MessageItem,
    "function_call": FunctionCallItem,
    "function_call_output": FunctionCallOutputItem,
    "item_reference": ItemReference,
}


def read_input(given: str | list[dict[str, Any]], number: str) -> list[Item | ItemReference]:
    """Each item with an id of the response's; references are still to be looked up. Raises Denied."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not given:
        raise Denied(Code.INVALID_REQUEST, "'input' must hold at least one item.", param="input")
    return [_read(raw, index, number) for index, raw in enumerate(given)]


def _read(raw: dict[str, Any], index: int, number: str) -> Item | ItemReference:
    at = f"input[{index}]"
    item: AnyItem = checked_part(raw, _kind_of(raw, at), at)
    fields: dict[str, Any]
    match item:
        case ItemReference():
            return item
        case MessageItem():
            kind, fields = "message", {"role": item.role, "content": _content(item, at)}
        case FunctionCallItem():
            kind = "function_call"
            fields = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
        case FunctionCallOutputItem():
            kind, fields = "function_call_output", {"call_id": item.call_id, "output": _output(item, at)}
    shown_id = item_id(kind, number, index, is_input=True)
    return {"id": shown_id, "type": kind, "status": item.status or "completed", **fields}


def _output(item: FunctionCallOutputItem, at: str) -> str | list[dict[str, Any]]:
    return item.output if isinstance(item.output, str) else _parts(item.output, f"{at}.output")


def _kind_of(raw: dict[str, Any], at: str) -> type[AnyItem]:
    name = raw.get("type")
    if name is None:
        return ItemReference if set(raw) <= {"id", "type"} else MessageItem
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        message = f"Items of type {name!r} are not served; {at} may be one of {', '.join(_KINDS)}."
        raise Denied(Code.UNSUPPORTED_FEATURE, message, param=f"{at}.type")
    return kind


def _content(item: MessageItem, at: str) -> list[dict[str, Any]]:
    if isinstance(item.content, list):
        return _parts(item.content, f"{at}.content")
    if item.role == "assistant":
        return [{"type": "output_text", "text": item.content, "annotations": []}]
    return [{"type": "input_text", "text": item.content}]


def _parts(raw: list[dict[str, Any]], at: str) -> list[dict[str, Any]]:
    return [_part(part, f"{at}[{index}]") for index, part in enumerate(raw)]


def _part(raw: dict[str, Any], at: str) -> dict[str, Any]:
    match raw.get("type"):
        case "input_text":
            return {"type": "input_text", "text": checked_part(raw, TextPart, at).text}
        case "output_text":
            part = checked_part(raw, TextPart, at)
            return {"type": "output_text", "text": part.text, "annotations": part.annotations or []}
        case "refusal":
            return {"type": "refusal", "refusal": checked_part(raw, RefusalPart, at).refusal}
        case other:
            message = f"Parts of type {str(other)[:40]!r} are not served; only text is."
            raise Denied(Code.UNSUPPORTED_FEATURE, message, param=f"{at}.type")
