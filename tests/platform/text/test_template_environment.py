"""What a template writes here is what it writes in transformers, which it was written for."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from stand_ins.tiny_text import CHATML, chat_template_of
from text.chat_template import ChatTemplate

TEMPLATES = {
    "chatml": CHATML,
    "white space": (
        "{%- for m in messages %}\n    {%- if m.role == 'user' -%}\n  U: {{ m.content }}\n    {%- else %}\n"
        "  {{ m.role | upper }}: {{ m['content'] | trim }}\n    {% endif %}\n{%- endfor -%}\n end"
    ),
    "loop": (
        "{% for m in messages[::-1] %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ loop.revindex0 }}"
        "{{ loop.previtem.role if loop.previtem else '-' }}{% if loop.index > 2 %}{% break %}{% endif %}"
        "{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}{% else %}none{% endfor %}"
    ),
    "tools": (
        "{% if tools is defined and tools is not none %}{% for t in tools %}{{ t | tojson(indent=2) }}"
        "{{ t.function.parameters.properties.keys() | list | sort | join(', ') }}{% endfor %}{% endif %}"
        "{% for m in messages if m.role != 'tool' %}{{ m.role }} {% for c in m.tool_calls or [] %}"
        "{{ c.function | tojson }}{% endfor %}{% endfor %}"
    ),
    "helpers": (
        "{% set ns = namespace(n=0, seen=[]) %}"
        "{% macro show(m, tag='x') %}<{{ tag }}>{{ m.content }}</{{ tag }}>"
        "{% endmacro %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ show(m, tag=m.role) }}{% endfor %}"
        "{{ ns.n * 2 }}{{ '-' * 3 }}{{ 7 // 2 }}{{ 2 ** 5 }}"
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(' | ') }}"
        "{{ (messages | first).role ~ '/' ~ (messages | last)['role'] }}{{ missing | default('d') }}"
        "{{ messages | rejectattr('tool_calls', 'defined') | list | length }}{{ add_generation_prompt }}"
    ),
    "strings": (
        "{% for m in messages %}{{ m.content.split('?')[0].lstrip() }}{{ m.content[:3] }}{{ m.content[-2:] }}"
        "{{ m.content.startswith('P') }}{{ 'test' in m.content }}{{ m.content | length }}"
        "{{ m.content | indent }}"
        "{{ m.content.replace('t', '**') }}{{ m.role.title() }}{{ m.role | capitalize }}{{ '%s!' % m.role }}"
        "{{ '{}?'.format(m.role) }}{{ m.content is string }}{{ m.role.split('s') }}{{ 'a,b'.split(',') }}"
        "{% endfor %}{{ [] | join('x') }}{{ ['a'] | join('x') }}{{ ['a', 1, 'b'] | join }}{{ 'ab' | list }}"
    ),
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}\n{% endgeneration %}{% endfor %}",
}


def contexts(shared_data: Path) -> list[dict[str, Any]]:
    folder = shared_data / "chat_templates"
    return [json.loads(path.read_text()) for path in sorted(folder.glob("minja_context_*.json"))]


def compared(source: str, context: dict[str, Any]) -> tuple[str, str]:
    messages, tools = context["messages"], context.get("tools")
    theirs, _ = render_jinja_template([messages], tools, chat_template=source, add_generation_prompt=True)
    variables = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": True}
    return str.__str__(ChatTemplate(source, {}, 100_000).render(variables)), theirs[0]


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_rendering_equals_that_of_transformers(shared_data: Path, name: str) -> None:
    for context in contexts(shared_data):
        ours, theirs = compared(TEMPLATES[name], context)
        assert ours == theirs


def test_real_template_equals_that_of_transformers(shared_data: Path, smollm2_dir: Path) -> None:
    for context in contexts(shared_data):
        ours, theirs = compared(chat_template_of(smollm2_dir), context)
        assert ours == theirs
