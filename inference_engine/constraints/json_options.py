"""How llguidance writes JSON for us, wherever a schema stands."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

JSON_OPTIONS: "JsonCompileOptions" = {
    # One spelling for each character: "\u0061" would be the property "a", yet not held to the schema of "a".
    "json_allowed_escapes": 'nrbtf\\"',
    "json_allow_general_unicode_escapes": False,
    # A weak model must not be able to fill its whole output with white space.
    "whitespace_pattern": r"[\x20\x0A\x0D\x09]{1,40}",
    "coerce_one_of": False,
    "lenient": False,
}
