"""Regular expressions in the dialect that ECMA-262, Python and llguidance share.

The dialects give the same text different meanings: `[[a]b]`, `(?i)`, `\\a`, `a++`, and what `\\s` or `\\D`
hold beyond ASCII. So an expression is read here and written anew: what only one dialect knows is refused, and
a shorthand stands for what it means in *all* of them, so that whatever is generated matches in each. With
`exact` it stands for what ECMA-262 says: for property names, where not to match has a meaning too.
"""

import re
from dataclasses import dataclass

from .errors import ConstraintError

_SPACES = r"\x{9}-\x{d}\x{20}"
_ECMA_SPACES = _SPACES + r"\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_ANY = r"[^\x{a}\x{d}\x{2028}\x{2029}]"


@dataclass(frozen=True, slots=True)
class _Shorthand:
    """Bodies of classes: what every dialect holds, what ECMA-262 does, what any of them may."""

    narrow: str
    exact: str
    wide: str


_SHORTHANDS = {
    "d": _Shorthand("0-9", "0-9", r"\p{Nd}"),
    "w": _Shorthand("0-9A-Za-z_", "0-9A-Za-z_", r"\p{Alphabetic}\p{M}\p{N}\p{Pc}\p{Cf}"),
    "s": _Shorthand(_SPACES, _ECMA_SPACES, _ECMA_SPACES + r"\x{1c}-\x{1f}\x{85}"),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_QUANTIFIER = re.compile(r"\{[0-9]{1,7}(,([0-9]{1,7})?)?\}")
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}


def portable_pattern(pattern: str, *, exact: bool = False) -> str:
    """The pattern in llguidance's syntax. Raises ConstraintError."""
    return _Reader(pattern, exact).read()


class _Reader:
    def __init__(self, pattern: str, exact: bool) -> None:
        self._pattern = pattern
        self._exact = exact
        self._at = 0
        self._can_repeat = False

    def read(self) -> str:
        written = []
        while self._at < len(self._pattern):
            written.append(self._read_one())
        return "".join(written)

    def _read_one(self) -> str:
        character = self._next()
        if character in "*+?{":
            return self._quantifier(character)
        self._can_repeat = character not in "^$(|"
        match character:
            case "\\":
                return self._escape_outside()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case ".":
                return _ANY
            case "^" | "$" | "|" | ")":
                return character
        return _literal(character)

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise self._refusal("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _takes(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _quantifier(self, character: str) -> str:
        if not self._can_repeat:
            raise self._refusal(f"nothing to repeat before '{character}'")
        self._can_repeat = False
        text = character
        if character == "{":
            found = _QUANTIFIER.match(self._pattern, self._at - 1)
            if found is None:
                raise self._refusal("a literal '{' must be written '\\{'")
            text, self._at = found[0], found.end()
        return text + ("?" if self._takes("?") else "")

    def _group(self) -> str:
        if self._takes("?:"):
            return "(?:"
        if self._takes("?"):
            raise self._refusal("of the groups that start with '(?' only '(?:' is supported")
        return "("

    def _escape_outside(self) -> str:
        letter = self._next()
        if letter.lower() in _SHORTHANDS:
            return f"[{self._shorthand(letter, is_negated=False)}]"
        return _literal(self._character_of(letter))

    def _shorthand(self, letter: str, *, is_negated: bool) -> str:
        """A class body. Inside a negated class the widest meaning leaves the least."""
        shorthand = _SHORTHANDS[letter.lower()]
        if self._exact:
            return f"[^{shorthand.exact}]" if letter.isupper() else shorthand.exact
        if letter.isupper():
            return f"[^{shorthand.narrow if is_negated else shorthand.wide}]"
        return shorthand.wide if is_negated else shorthand.narrow

    def _character_of(self, letter: str) -> str:
        """The one character that an escape with this letter stands for."""
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in _HEX:
            found = _HEX[letter].match(self._pattern, self._at)
            if found is None or 0xD800 <= int(found[0], 16) < 0xE000:
                raise self._refusal(f"'\\{letter}' needs the code of a character")
            self._at = found.end()
            return chr(int(found[0], 16))
        if letter.isalnum() or letter in "<>" or not letter.isascii():
            raise self._refusal(f"the escape '\\{letter}' is not supported")
        return letter

    def _class(self) -> str:
        is_negated = self._takes("^")
        bodies = []
        while not self._takes("]"):
            bodies.append(self._class_item(is_negated))
        if not bodies:
            raise self._refusal("an empty class '[]' is not supported")
        return f"[{'^' if is_negated else ''}{''.join(bodies)}]"

    def _class_item(self, is_negated: bool) -> str:
        letter = self._next()
        if letter == "\\":
            letter = self._next()
            if letter.lower() in _SHORTHANDS:
                return self._shorthand(letter, is_negated=is_negated)
            letter = self._character_of(letter)
        if not self._starts_range():
            return _literal(letter)
        self._at += 1
        end = self._next()
        if end == "\\":
            end = self._character_of(self._next())
        if end < letter:
            raise self._refusal(f"the range '{letter}-{end}' is empty")
        return f"{_literal(letter)}-{_literal(end)}"

    def _starts_range(self) -> bool:
        return self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at)

    def _refusal(self, why: str) -> ConstraintError:
        return ConstraintError(f"pattern {self._pattern[:80]!r}: {why}")


def _literal(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    return f"\\x{{{ord(character):x}}}"
