"""Rewrites a parsed chat template so that its own words stay recognisable in what it renders.

Each piece of literal text becomes an attribute of the environment that holds a TrackedText; `~` goes through
the environment's tracking join, and every loop through its deadline. Literals that only name or compare
something (keys, attributes, operands of `==`) stay plain.
"""

from typing import cast

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from .tracked_text import TrackedText

LITERAL = "octavo_literal_{}"
JOIN = "concat"
WATCH = "octavo_watch"


def mark_literals(tree: nodes.Template) -> dict[str, TrackedText]:
    """Changes `tree` in place; returns the environment attributes it now refers to."""
    marker = _LiteralMarker()
    marker.visit(tree)
    return {LITERAL.format(index): TrackedText.owned(text) for text, index in marker.indices.items()}


class _LiteralMarker(NodeTransformer):
    def __init__(self) -> None:
        self.indices: dict[str, int] = {}

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return self._literal(node.data, node.lineno)

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        return self._literal(node.value, node.lineno) if isinstance(node.value, str) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        node.node = self.visit(node.node)
        if not isinstance(node.arg, nodes.Const):
            node.arg = self.visit(node.arg)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        node.value = self.visit(node.value)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        parts = nodes.List([self.visit(part) for part in node.nodes], lineno=node.lineno)
        return _call(JOIN, parts)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _call(WATCH, cast(nodes.Expr, node.iter))
        return node

    def _literal(self, text: str, lineno: int) -> nodes.Node:
        index = self.indices.setdefault(text, len(self.indices))
        return nodes.EnvironmentAttribute(LITERAL.format(index), lineno=lineno)


def _call(attribute: str, argument: nodes.Expr) -> nodes.Call:
    function = nodes.EnvironmentAttribute(attribute, lineno=argument.lineno)
    return nodes.Call(function, [argument], [], None, None, lineno=argument.lineno)
