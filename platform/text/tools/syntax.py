"""How a family of models writes its calls."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Raw

from inference_engine.contract.tool_calls import CallForm, ToolCalls

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What forcing a call needs to know."""

    name: str
    schema: Raw
    """JSON schema of its arguments."""


@dataclass(frozen=True, kw_only=True)
class ToolSyntax:
    name: str
    openers: tuple[str, ...] = ()
    """Any of them, wherever it stands, begins calls."""
    first_openers: tuple[str, ...] = ()
    """The same, but only at the beginning of the output."""
    closers: tuple[str, ...] = ()
    takes_bare: bool = False
    """An output that begins with a JSON object or array is calls without any marker."""
    takes_names: bool = False
    """`f[ARGS]{...}` is a call."""

    before_all: str = ""
    before: str = '{{"name": {name}, "arguments": '
    after: str = "}"
    between: str = ""
    after_all: str = ""
    takes_several: bool = True
    """How forced calls are written; see inference_engine.contract.tool_calls."""
    id_length: int = 24

    @property
    def markers(self) -> tuple[str, ...]:
        """Must be seen by the parser even where they are special tokens that clients don't see."""
        return (*self.openers, *self.closers, "[ARGS]", "[CALL_ID]")

    def new_id(self) -> str:
        """Some models' templates take ids of nine letters and digits only."""
        prefix = "call_" if self.id_length > 9 else ""
        return prefix + "".join(secrets.choice(_LETTERS) for _ in range(self.id_length))

    def forced(self, tools: Sequence[Tool], max_calls: int | None, answer: Sequence[Raw] = ()) -> ToolCalls:
        """At least one call of these tools, and nothing else; or an answer of that schema instead."""
        if not self.takes_several:
            max_calls = 1
        wraps = max_calls != 1 or self.openers
        forms = [CallForm(begin=self._begin(tool.name), schema=tool.schema, end=self.after) for tool in tools]
        return ToolCalls(
            forms=tuple(forms),
            prefix=self.before_all if wraps else "",
            separator=self.between,
            suffix=self.after_all if wraps else "",
            max_calls=max_calls,
            answer=tuple(answer),
        )

    def _begin(self, name: str) -> str:
        return self.before.format(name=json.dumps(name), plain_name=name)


HERMES = ToolSyntax(
    name="hermes",
    openers=("<tool_call>",),
    closers=("</tool_call>",),
    before='<tool_call>\n{{"name": {name}, "arguments": ',
    after="}\n</tool_call>",
    between="\n",
)
"""NousResearch's Hermes 2 and 3, Qwen 2.5 and 3, and many more."""
LLAMA3 = ToolSyntax(
    name="llama3",
    first_openers=("<|python_tag|>",),
    takes_bare=True,
    before='{{"name": {name}, "parameters": ',
    takes_several=False,
)
"""Llama 3.1 to 3.3: the whole answer is the call's JSON."""
MISTRAL = ToolSyntax(
    name="mistral",
    openers=("[TOOL_CALLS]",),
    before_all="[TOOL_CALLS][",
    between=", ",
    after_all="]",
    takes_names=True,
    id_length=9,
)
"""Mistral 7B v0.3, Nemo, Large: an array of calls behind the marker."""
MISTRAL_ARGS = ToolSyntax(
    name="mistral_args",
    openers=("[TOOL_CALLS]",),
    before="[TOOL_CALLS]{plain_name}[ARGS]",
    after="",
    takes_names=True,
    id_length=9,
)
"""Mistral Small 3.2, Magistral, Devstral: a marker and a name in front of each call's arguments."""
JSON = ToolSyntax(
    name="json",
    first_openers=("```json", "```"),
    closers=("```",),
    takes_bare=True,
    before_all="[",
    between=", ",
    after_all="]",
)
"""Anything else: the whole answer is a call's JSON, or an array of such, perhaps in a fence."""

SYNTAXES = {syntax.name: syntax for syntax in (HERMES, LLAMA3, MISTRAL, MISTRAL_ARGS, JSON)}


def syntax_of(template: str | None, *, knows_tools: bool, setting: str = "") -> ToolSyntax:
    """The one named by the setting, else what the chat template itself writes.

    A template that knows no tools gets the Hermes kind, in which the instruction of `without_template` asks.
    """
    if setting in SYNTAXES:
        return SYNTAXES[setting]
    source = template or ""
    if "[TOOL_CALLS]" in source:
        return MISTRAL_ARGS if "[ARGS]" in source else MISTRAL
    if "<tool_call>" in source or not knows_tools:
        return HERMES
    if "<|python_tag|>" in source or "ipython" in source:
        return LLAMA3
    return JSON
