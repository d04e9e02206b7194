"""Stand-ins for two libraries of the engine that a machine for a check of its GPU need not have.

msgspec only declares the engine's records here and llguidance compiles grammars, which no check uses. Where a
library is installed it is used.
"""

import importlib.util
import inspect
import sys
from types import ModuleType
from typing import Any, dataclass_transform

LLGUIDANCE = ("LLMatcher", "LLTokenizer", "LLParserLimits", "JsonCompileOptions")


class _Field:
    def __init__(self, default: Any = None, default_factory: Any = None, **other: Any) -> None:
        self.make = default_factory if default_factory is not None else lambda: default


@dataclass_transform(field_specifiers=(_Field,))
class _Struct:
    """Keeps what it is given, by position or by name; defaults for the rest; then `__post_init__`."""

    _names: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        own = tuple(name for name in inspect.get_annotations(cls) if name != "_names")
        cls._names = cls._names + tuple(name for name in own if name not in cls._names)

    def __init__(self, *values: Any, **named: Any) -> None:
        given = {**dict(zip(self._names, values, strict=False)), **named}
        for name in self._names:
            value = given[name] if name in given else getattr(type(self), name)
            if name not in given:
                value = value.make() if isinstance(value, _Field) else _copied(value)
            setattr(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        pass


class _Anything:
    """For names that are declared with and never called: annotations, codecs, options."""

    def __init__(self, *values: Any, **named: Any) -> None:
        pass

    def __getattr__(self, name: str) -> "_Anything":
        return _Anything()

    def __call__(self, *values: Any, **named: Any) -> "_Anything":
        return self


def install_stand_ins() -> list[str]:
    """The names of what is missing, and is stood in for from here on."""
    missing = [name for name in ("msgspec", "llguidance") if importlib.util.find_spec(name) is None]
    if "msgspec" in missing:
        _put("msgspec", Struct=_Struct, Meta=_Anything, Raw=_Anything, field=_Field, UNSET=None)
        for name in ("json", "msgpack", "structs"):
            _put(f"msgspec.{name}", Encoder=_Anything, Decoder=_Anything, encode=_Anything, replace=_Anything)
            setattr(sys.modules["msgspec"], name, sys.modules[f"msgspec.{name}"])
    if "llguidance" in missing:
        _put("llguidance", **dict.fromkeys(LLGUIDANCE, _Anything))
        _put("llguidance._lib", **dict.fromkeys(LLGUIDANCE, _Anything))
        _put("llguidance.numpy", fill_next_token_bitmask=_Anything)
    return missing


def _put(name: str, **contents: Any) -> None:
    module = ModuleType(name)
    module.__dict__.update(contents)
    module.__path__ = []
    sys.modules[name] = module


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict | set) else value
