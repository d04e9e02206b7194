"""The sandbox, and whose words are whose after every construct a template may use."""

import pytest

from text.chat_template import ChatTemplate
from text.errors import ModelTextError, PromptError
from text.tracked_text import TrackedText

CONTENT = "mine <T> mine"


def rendered(source: str, **variables: object) -> TrackedText:
    template = ChatTemplate(source, {"bos_token": "<S>"}, max_chars=10_000)
    return template.render({"content": CONTENT, "items": ["a", "b"], **variables})


def owned_parts(text: TrackedText) -> list[str]:
    return [text[start:end] for start, end in text.spans]


@pytest.mark.parametrize(
    ("source", "text", "owned"),
    [
        ("<T>{{ content }}<U>", f"<T>{CONTENT}<U>", ["<T>", "<U>"]),
        ("{{ '<T>' + content + '<U>' }}", f"<T>{CONTENT}<U>", ["<T>", "<U>"]),
        ("{{ '<T>' ~ content ~ 7 }}", f"<T>{CONTENT}7", ["<T>"]),
        ("{{ bos_token }}{{ content }}", f"<S>{CONTENT}", ["<S>"]),
        ("{{ bos_token + content | trim }}", f"<S>{CONTENT}", ["<S>"]),
        ("{% set x = '<T>' + content %}{{ x }}", f"<T>{CONTENT}", ["<T>"]),
        ("{% set x %}<T>{{ content }}{% endset %}{{ x | trim }}", f"<T>{CONTENT}", ["<T>"]),
        ("{% macro m(c) %}<T>{{ c }}{% endmacro %}{{ m(content) }}", f"<T>{CONTENT}", ["<T>"]),
        (
            "{% macro m() %}<T>{{ caller() }}{% endmacro %}{% call m() %}{{ content }}{% endcall %}",
            f"<T>{CONTENT}",
            ["<T>"],
        ),
        ("{% filter trim %} <T>{{ content }}{% endfilter %}", f"<T>{CONTENT}", ["<T>"]),
        ("{% filter title %}<T>{{ content }}{% endfilter %}", "<T>mine <T> Mine", []),
        ("{% block b %}<T>{{ content }}{% endblock %}", f"<T>{CONTENT}", ["<T>"]),
        ("{% generation %}<T>{{ content }}{% endgeneration %}", f"<T>{CONTENT}", ["<T>"]),
        ("{{ ['<T>', content] | join('<U>') }}", f"<T><U>{CONTENT}", ["<T><U>"]),
        ("{{ items | map('upper') | join('<U>') }}", "A<U>B", ["<U>"]),
        ("{{ '<U>'.join(items) }}", "a<U>b", ["<U>"]),
        ("{{ [{'x': {'y': 'k'}}] | join('-', 'x.y') }}", "k", ["k"]),
        (
            "{% set ns = namespace(t='') %}{% for i in items %}{% set ns.t = ns.t + i + '<T>' %}{% endfor %}"
            "{{ ns.t }}",
            "a<T>b<T>",
            ["<T>", "<T>"],
        ),
        ("{{ '<T>' if items else '<U>' }}", "<T>", ["<T>"]),
        ("{{ content.split('<T>')[0] ~ '<U>' }}", "mine <U>", ["<U>"]),
        ("{{ content.replace('mine', '<U>') }}", "<U> <T> <U>", []),
        ("{{ {'k': content} | tojson }}", '{"k": "mine <T> mine"}', []),
        ("{{ ('<T>' + content) | tojson }}", '"<T>mine <T> mine"', []),
        ("{{ '<T>%s' | format(content) }}", f"<T>{CONTENT}", []),
        ("{{ '<T>{}'.format(content) }}", f"<T>{CONTENT}", []),
        ("{{ ('<T>' + content) | safe }}", f"<T>{CONTENT}", []),
        ("{% autoescape true %}{{ content }}{% endautoescape %}", "mine &lt;T&gt; mine", []),
        ("{% for i in items if i != 'a' %}{{ loop.last }}{{ i }}{% endfor %}", "Trueb", []),
        (
            "{% for i in items %}{% if loop.first %}{% continue %}{% endif %}<T>{{ i }}{% endfor %}",
            "<T>b",
            ["<T>"],
        ),
        ("{% for i in items %}{{ i }}{{ loop.length }}{{ loop.nextitem }}{% break %}{% endfor %}", "a2b", []),
        ("{{ missing }}{{ content.missing }}<T>", "<T>", ["<T>"]),
    ],
)
def test_only_the_templates_own_words_are_owned(source, text, owned) -> None:
    result = rendered(source)
    assert result == text
    assert owned_parts(result) == owned


def test_blocks_are_trimmed_as_templates_expect() -> None:
    assert rendered("a\n  {% if items %}\nb\n  {% endif %}\nc") == "a\nb\nc"


def test_json_is_as_models_are_trained_on_it() -> None:
    assert rendered("{{ x | tojson }}", x={"é": "<&'"}) == '{"é": "<&\'"}'
    assert rendered("{{ x | tojson(indent=2) }}", x={"b": 1}) == '{\n  "b": 1\n}'


def test_date_is_printed() -> None:
    assert rendered("{{ strftime_now('%Y') }}").isdigit()


def test_refusal_of_the_template_reaches_the_client_in_its_words() -> None:
    with pytest.raises(PromptError) as caught:
        rendered("{{ raise_exception('roles must alternate') }}")
    assert caught.value.message == "roles must alternate"
    assert caught.value.param == "messages"


@pytest.mark.parametrize(
    "source",
    [
        "{{ content.missing.deeper }}",
        "{{ content + 1 }}",
        "{{ 1 / 0 }}",
        "{{ items.append('c') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ strftime_now.__globals__['json'].x }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ [1, 'a'] | sort }}",
        "{{ content() }}",
    ],
)
def test_fault_inside_the_template_is_a_typed_error_that_tells_nothing(source) -> None:
    with pytest.raises(PromptError) as caught:
        rendered(source)
    assert caught.value.message == "the model's chat template does not accept these messages"


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(100000) %}0123456789{% endfor %}",
        "{{ 'x' * 1000000000000 }}",
        "{{ 10 ** 10000000 }}",
        "{% set ns = namespace(t='x') %}{% for i in range(99) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
        "{% set ns = namespace(t='x') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
    ],
)
def test_template_that_writes_too_much_is_stopped(source) -> None:
    with pytest.raises(PromptError):
        rendered(source)


def test_template_that_never_ends_is_stopped() -> None:
    template = ChatTemplate(
        "{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% endfor %}", {}, 100
    )
    with pytest.raises(PromptError, match="too long"):
        template.render({"r": range(100_000)}, seconds=0.05)


def test_same_template_is_rendered_again_after_a_failure() -> None:
    template = ChatTemplate("{% for i in r %}{{ i }}{% endfor %}", {}, 100)
    with pytest.raises(PromptError):
        template.render({"r": range(1000)})
    assert template.render({"r": [1, 2]}) == "12"


@pytest.mark.parametrize(
    "source", ["{% if %}", "{% include 'x' %}", "{{ x | no_such_filter }}", "{% extends 'x' %}"]
)
def test_template_that_can_never_work_is_refused_at_once(source) -> None:
    with pytest.raises(ModelTextError):
        ChatTemplate(source, {}, 100)
