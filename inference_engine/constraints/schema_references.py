"""References within one schema: each must lead to a place that was walked as a schema."""

from typing import Any
from urllib.parse import unquote

from .errors import unsupported


class References:
    def __init__(self) -> None:
        self._places: set[str] = set()
        self._anchors: set[str] = set()
        self._references: list[tuple[str, str]] = []

    def visit(self, place: str) -> None:
        """A JSON pointer at which a schema stands."""
        self._places.add(place)

    def add_anchor(self, name: str) -> None:
        self._anchors.add(name)

    def refer(self, reference: Any, place: str) -> str:
        """Note the reference found at this place."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise unsupported("$ref", place, "is supported within the schema only: '#...'")
        self._references.append((reference, place))
        return reference

    def check(self) -> None:
        """Raises ConstraintError at the first that leads nowhere, or to what was not walked as a schema."""
        for reference, place in self._references:
            target = unquote(reference[1:])
            if target not in self._places and target not in self._anchors:
                raise unsupported("$ref", place, f"{reference[:80]!r} leads to no schema")


def pointer_part(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
