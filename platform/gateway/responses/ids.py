"""Ids of responses and of their items. An item's id names the response that it belongs to."""

import re

_ITEM = re.compile(r"[a-z]{2,4}_(?P<response>[0-9a-f]{24})[io]\d{1,6}")
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}


def response_id_of(number: str) -> str:
    """`number`: 24 hexadecimal digits, the same as in the request's id."""
    return f"resp_{number}"


def item_id(kind: str, number: str, index: int, *, is_input: bool) -> str:
    return f"{_PREFIXES[kind]}_{number}{'i' if is_input else 'o'}{index}"


def response_of_item(given: str) -> str | None:
    """Id of the response that an item belongs to; None for what is no item's id."""
    found = _ITEM.fullmatch(given)
    return None if found is None else response_id_of(found["response"])
