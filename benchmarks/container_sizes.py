"""How many things every container holds that can be reached from an object of the engine, by its path."""

from collections import deque
from collections.abc import Iterator

OURS = "inference_engine."
CONTAINERS = (dict, list, set, deque)


def container_sizes(root: object) -> dict[str, int]:
    """Path of attribute names -> members. Follows our own objects and what lies in containers, each once."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [(type(root).__name__, root)]
    while waiting:
        path, each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, CONTAINERS):
            sizes[path] = max(sizes.get(path, 0), len(each))
            members = list(each.values()) if isinstance(each, dict) else list(each)
            waiting += [(f"{path}[]", member) for member in members]
        elif type(each).__module__.startswith(OURS):
            waiting += [(f"{path}.{name}", value) for name, value in _attributes(each)]
    return sizes


def _attributes(each: object) -> Iterator[tuple[str, object]]:
    yield from getattr(each, "__dict__", {}).items()
    for kind in type(each).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(each, name):
                yield name, getattr(each, name)
