"""A model's own chat template, compiled once and rendered with track of which words are its own."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from jinja2 import Template, TemplateError, TemplateSyntaxError, meta, nodes

from .errors import ModelTextError, PromptError
from .template_environment import TemplateEnvironment, TemplateLimit, TemplateRefusal
from .template_literals import mark_literals
from .tracked_text import TrackedText

MAX_SECONDS = 2.0
_NULL_CONTENT = re.compile(r"""content['"\]]*\s+is\s+(not\s+)?none""")
_TEMPLATE_FAULTS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """Rendering is safe in several threads at once."""

    def __init__(self, source: str, tokens: Mapping[str, str], max_chars: int) -> None:
        """`tokens`: bos_token and the like. Raises ModelTextError."""
        self.environment = TemplateEnvironment(max_chars)
        self.knows_developer = "developer" in source
        self._tokens = {name: TrackedText.owned(text) for name, text in tokens.items()}
        self._template, variables = _compile(self.environment, source)
        self.knows_tools = "tools" in variables
        self.knows_calls = "tool_calls" in source
        self.asks_for_null = _NULL_CONTENT.search(source) is not None
        """Whether it tells calls by a content of null."""

    @cached_property
    def takes_system(self) -> bool:
        """Whether the words of a system message come through."""
        probe = "Answer briefly."
        messages = [{"role": role, "content": text} for role, text in (("system", probe), ("user", "Hello."))]
        try:
            return probe in self.render({"messages": messages, "tools": None, "documents": None})
        except PromptError:
            return False

    def render(self, variables: Mapping[str, Any], seconds: float = MAX_SECONDS) -> TrackedText:
        """Strings in `variables` count as a client's text unless they are TrackedText. Raises PromptError."""
        self.environment.start(seconds)
        try:
            return TrackedText.concat([self._template.render({**self._tokens, **variables})])
        except (TemplateRefusal, TemplateLimit) as error:
            raise PromptError(str(error.message), "messages") from error
        except _TEMPLATE_FAULTS as error:
            raise PromptError(
                "the model's chat template does not accept these messages", "messages"
            ) from error


def _compile(environment: TemplateEnvironment, source: str) -> tuple[Template, set[str]]:
    """And the variables it asks for."""
    try:
        tree = environment.parse(source)
        _refuse_other_templates(tree)
        variables = meta.find_undeclared_variables(tree)
        for name, literal in mark_literals(tree).items():
            setattr(environment, name, literal)
        return environment.from_string(tree), variables
    except (TemplateSyntaxError, RecursionError) as error:
        raise ModelTextError(f"the chat template does not compile: {error}") from error


def _refuse_other_templates(tree: nodes.Template) -> None:
    for kind in (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport):
        if tree.find(kind) is not None:
            raise ModelTextError("the chat template refers to other templates")
