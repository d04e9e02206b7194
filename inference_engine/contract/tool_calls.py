"""Forced tool calls as a constraint: what `tool_choice` required or named means in a model's own format.

    [prefix] (begin arguments end) [separator (begin arguments end)] ... [suffix]

Each call is one of the forms, one form a tool. `begin`, `end` and the rest are literal text, `arguments` is
a JSON value of the form's schema. With the tools f and g of which one at least must be called:

Hermes, Qwen     begin  '<tool_call>\\n{"name": "f", "arguments": '     end  '}\\n</tool_call>'
                 separator  '\\n'
Llama 3 (JSON)   begin  '{"name": "f", "parameters": '                 end  '}'      max_calls  1
Mistral          prefix  '[TOOL_CALLS][', suffix  ']', separator  ', '
                 begin  '{"name": "f", "arguments": '                  end  '}'
Mistral, newer   begin  '[TOOL_CALLS]f[ARGS]'                          end  ''

A named tool is the only form, usually with `max_calls` 1. Where a literal spells one of the tokenizer's added
tokens (`<tool_call>`, `[TOOL_CALLS]`, special or not), exactly that token must come; the longest is taken.
White space in literals is exact, within the arguments it is the model's own.
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct, json

from .requests import Constraint, ConstraintKind

SYNTAXES = ("hermes", "llama3", "mistral", "mistral_args", "json")
"""How models write calls, as a Description may name it."""

MAX_FORMS = 256
MAX_CALLS = 256

Literal = Annotated[str, Meta(max_length=4096)]


class CallForm(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one tool is called."""

    begin: Literal
    schema: Raw
    """JSON schema of the arguments, as the client sent it; a `$ref` in it starts at its own root."""
    end: Literal


class ToolCalls(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """At least one call, and nothing beside the calls; or an answer instead of them."""

    forms: Annotated[tuple[CallForm, ...], Meta(min_length=1, max_length=MAX_FORMS)]
    prefix: Literal = ""
    separator: Literal = ""
    suffix: Literal = ""
    max_calls: Annotated[int, Meta(ge=1, le=MAX_CALLS)] | None = None
    answer: Annotated[tuple[Raw, ...], Meta(max_length=1)] = ()
    """JSON schema of the answer that the model may give instead, where it may choose."""

    def constraint(self) -> Constraint:
        """As it crosses to an engine, which refuses schemas that it can't enforce by the keyword's name."""
        return Constraint(kind=ConstraintKind.TOOL_CALLS, source=json.encode(self).decode())


def read_tool_calls(source: str) -> ToolCalls:
    """The other way. Raises msgspec.ValidationError or DecodeError."""
    return json.decode(source, type=ToolCalls)
