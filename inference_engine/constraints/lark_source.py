"""A Lark grammar, checked for what would go around the rules of constraints."""

import re

from .errors import ConstraintError

_SKIPPED = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/|(?:#|//)[^\n]*',
)
_DIRECTIVE = re.compile(r"%\s*([a-zA-Z_]+)")
_ATTRIBUTES = re.compile(r"^[ \t]*[_?!]*[a-zA-Z_][\w-]*\s*\[([^\]]*)\]\s*:", re.MULTILINE)
DIRECTIVES = frozenset({"ignore"})


def checked_lark(source: str) -> str:
    """The grammar as it is. Raises ConstraintError.

    Refused: directives other than `%ignore` (an embedded schema would skip our walk through its keywords),
    tokens by name or id `<...>` (an end token inside the output would end it), rule attributes `rule[...]`.
    """
    bare = _SKIPPED.sub(" ", source)
    for name in _DIRECTIVE.findall(bare):
        if name not in DIRECTIVES:
            raise ConstraintError(f"grammar: the directive '%{name}' is not supported")
    if "<" in bare:
        raise ConstraintError("grammar: tokens in angle brackets are not supported")
    if "@" in bare:
        raise ConstraintError("grammar: references to other grammars '@...' are not supported")
    found = _ATTRIBUTES.search(bare)
    if found is not None:
        raise ConstraintError(f"grammar: the rule attributes '[{found[1][:40]}]' are not supported")
    return source
