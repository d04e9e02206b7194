"""A YAML text as a checked document; whatever is wrong is said with its line and its field."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from management.configuration.document import Document

Path = tuple[str | int, ...]

_AT = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")


class ConfigurationError(Exception):
    """`str()` is for the operator: line, field, what is wrong."""

    def __init__(self, message: str, line: int | None = None, path: Path = ()) -> None:
        place = [] if line is None else [f"line {line}"]
        place += [_shown(path)] if path else []
        super().__init__(": ".join([*place, message]))


class Source:
    """A document and where each of its fields stands."""

    def __init__(self, text: str) -> None:
        """Raises ConfigurationError."""
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            if node is None:
                raise ConfigurationError("the file is empty")
            self._root: yaml.Node = node
            _refuse_repeated_names(node)
            data = loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise ConfigurationError(f"no YAML: {error.problem}", line) from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"no YAML: {error}") from None
        self.document = self._checked(data)

    def error(self, message: str, path: Path) -> ConfigurationError:
        return ConfigurationError(message, self._line_of(path), path)

    def _checked(self, data: Any) -> Document:
        try:
            document = msgspec.convert(data, Document)
        except msgspec.ValidationError as error:
            raise self.error(*_message_and_path(str(error))) from None
        self._refuse_repeated(document)
        return document

    def _refuse_repeated(self, document: Document) -> None:
        tenants = document.tenants
        self._refuse_twice([tenant.slug for tenant in tenants], ("tenants",), "slug")
        for number, tenant in enumerate(tenants):
            at: Path = ("tenants", number)
            limits = [(limit.kind, limit.model) for limit in tenant.limits or ()]
            self._refuse_twice(limits, (*at, "limits"), "kind")
            self._refuse_twice([key.id for key in tenant.keys or ()], (*at, "keys"), "id")
            for place, key in enumerate(tenant.keys or ()):
                kinds = [limit.kind for limit in key.limits or ()]
                self._refuse_twice(kinds, (*at, "keys", place, "limits"), "kind")

    def _refuse_twice(self, names: Sequence[str | tuple[str, str]], path: Path, field: str) -> None:
        for number, name in enumerate(names):
            if name in names[:number]:
                shown = name if isinstance(name, str) else name[0]
                raise self.error(f"{shown} is here twice", (*path, number, field))

    def _line_of(self, path: Sequence[str | int]) -> int:
        """Of the field itself, or of the nearest thing around it that stands in the file."""
        node, line = self._root, self._root.start_mark.line
        for step in path:
            if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == step), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line, found[1]
            else:
                break
        return line + 1


def _refuse_repeated_names(root: yaml.Node) -> None:
    """YAML forbids them; the parser takes the last one silently."""
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in names:
                    raise ConfigurationError(f"{key.value} is here twice", key.start_mark.line + 1)
                names.add(str(key.value))
                waiting.append(value)


def _message_and_path(text: str) -> tuple[str, Path]:
    at = _AT.search(text)
    message = text[: at.start()] if at else text
    path: list[str | int] = []
    for step in _STEP.finditer(at["path"] if at else ""):
        path.append(int(step["index"]) if step["index"] else step["name"])
    unknown = _UNKNOWN.search(message)
    if unknown:
        path.append(unknown["name"])
    return message, tuple(path)


def _shown(path: Path) -> str:
    """tenants[0].weight"""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).lstrip(".")
