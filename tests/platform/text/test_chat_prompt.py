"""Messages of every shape a client may send, and the templates of several families."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference_engine.contract.codes import Code
from stand_ins.tiny_text import CHATML
from text.chat_prompt import check_size, render_chat
from text.chat_template import ChatTemplate
from text.errors import PromptError
from text.tracked_text import TrackedText

TOOL_TEMPLATE = (
    "{% if tools %}<|tools|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %} {{ k }}={{ v }}{% endfor %}</tool_call>{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}<|end|>\n{% endfor %}"
)


def chatml() -> ChatTemplate:
    return ChatTemplate(CHATML, {}, 100_000)


def prompt(*messages: dict[str, Any], template: ChatTemplate | None = None) -> TrackedText:
    return render_chat(template or chatml(), messages)


def test_conversation_is_written_in_order() -> None:
    assert prompt(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"},
    ) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )


def test_text_parts_become_lines() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert "user\none\ntwo<|im_end|>" in prompt({"role": "user", "content": parts})


def test_developer_speaks_as_system_to_a_model_that_knows_no_developer() -> None:
    message = {"role": "developer", "content": "x"}
    assert prompt(message).startswith("<|im_start|>system")
    template = ChatTemplate("{# developer #}{{ messages[0].role }}", {}, 100)
    assert prompt(message, template=template) == "developer"


def test_generation_prompt_can_be_left_out() -> None:
    text = render_chat(chatml(), [{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    assert text == "<|im_start|>user\nHi<|im_end|>\n"


def test_assistant_without_content_is_empty() -> None:
    message = {"role": "assistant", "content": None}
    assert "assistant\n<|im_end|>" in prompt({"role": "user", "content": "x"}, message)


def test_roles_may_be_part_of_a_control_token() -> None:
    template = ChatTemplate(
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}", {}, 999
    )
    text = prompt({"role": "user", "content": "<|assistant|>"}, template=template)
    assert [text[start:end] for start, end in text.spans] == ["<|user|>"]


@pytest.mark.parametrize("name", ["simple", "system", "tool_use"])
@pytest.mark.parametrize("source", [CHATML, TOOL_TEMPLATE])
def test_known_conversations_render(shared_data: Path, name: str, source: str) -> None:
    context = json.loads((shared_data / "chat_templates" / f"minja_context_{name}.json").read_text())
    text = render_chat(ChatTemplate(source, {}, 100_000), context["messages"], tools=context.get("tools"))
    for message in context["messages"]:
        assert message["content"] in text
    if name == "tool_use" and source == TOOL_TEMPLATE:
        assert "<tool_call>ipython code=print('Hello, World!')</tool_call>" in text


@pytest.mark.parametrize("arguments", ["[1]", "{", "", None, 7])
def test_malformed_tool_arguments_stay_as_they_are(arguments: object) -> None:
    template = ChatTemplate("{{ messages[0].tool_calls[0].function.arguments }}", {}, 999)
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert prompt(message, template=template) == str(arguments)


@pytest.mark.parametrize(
    ("message", "param", "code"),
    [
        ({"role": "king", "content": "x"}, "messages[0].role", Code.INVALID_REQUEST),
        ({"role": ["user"], "content": "x"}, "messages[0].role", Code.INVALID_REQUEST),
        ({"content": "x"}, "messages[0].role", Code.INVALID_REQUEST),
        ({"role": "user"}, "messages[0].content", Code.INVALID_REQUEST),
        ({"role": "user", "content": 7}, "messages[0].content", Code.INVALID_REQUEST),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]", Code.INVALID_REQUEST),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "messages[0].content[0].text",
            Code.INVALID_REQUEST,
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            "messages[0].content[0].type",
            Code.UNSUPPORTED_FEATURE,
        ),
    ],
)
def test_message_of_a_wrong_shape_is_refused_by_name(message: dict[str, Any], param: str, code: Code) -> None:
    with pytest.raises(PromptError) as caught:
        prompt(message)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_no_messages_are_refused() -> None:
    with pytest.raises(PromptError) as caught:
        prompt()
    assert caught.value.param == "messages"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "x" * 101}],
        [{"role": "user", "content": "é" * 51}],
        [{"role": "user", "content": [{"type": "text", "text": "x" * 60}] * 2}],
        [{"role": "user", "content": ""}] * 11,
    ],
)
def test_what_can_never_fit_is_refused_before_rendering(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(PromptError) as caught:
        check_size(messages, max_messages=10, max_bytes=100)
    assert caught.value.code == Code.CONTEXT_LENGTH_EXCEEDED


def test_what_may_fit_passes_and_a_lone_surrogate_does_not() -> None:
    check_size([{"role": "user", "content": "é" * 50}], max_messages=1, max_bytes=100)
    with pytest.raises(PromptError) as caught:
        check_size([{"role": "user", "content": "emoji \ud83d"}], max_messages=1, max_bytes=100)
    assert caught.value.code == Code.INVALID_REQUEST


CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": '{"x": "<|im_end|>"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
USER = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ messages[1].tool_calls[0].function.arguments.x }}", "<|im_end|>"),
        ("{{ 'a: ' + messages[1].tool_calls[0].function.arguments }}", 'a: {"x": "<|im_end|>"}'),
        ("{% if messages[1].content is none %}null{% endif %}{# tool_calls #}", "null"),
        ("{# tool_calls, content is none #}{{ messages[1].content | length }}", "0"),
    ],
)
def test_calls_are_told_the_way_a_template_takes_them(source: str, text: str) -> None:
    rendered = prompt(USER, CALLED, template=ChatTemplate(source, {}, 999))
    assert rendered == text
    assert "<|im_end|>" not in "".join(rendered[start:end] for start, end in rendered.spans)


def test_a_template_that_takes_no_calls_says_so_once() -> None:
    template = ChatTemplate("{{ raise_exception('no tool_calls') }}", {}, 999)
    with pytest.raises(PromptError, match="no tool_calls"):
        prompt(USER, CALLED, template=template)


def test_tools_are_a_clients_text() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "<|im_end|>", "parameters": {}}}]
    source = "<|tools|>{% for t in tools %}{{ t | tojson }}{{ t.function.description }}{% endfor %}<|im_end|>"
    text = render_chat(ChatTemplate(source, {}, 999), [USER], tools=tools)
    assert text.count("<|im_end|>") == 3
    assert [text[start:end] for start, end in text.spans] == ["<|tools|>", "<|im_end|>"]


def test_tools_count_for_the_size() -> None:
    with pytest.raises(PromptError) as caught:
        check_size([USER], 10, 100, [{"description": "x" * 200}])
    assert caught.value.code == Code.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize(
    ("source", "takes"),
    [
        (CHATML, True),
        ("{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}", False),
        ("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}", False),
    ],
)
def test_whether_a_template_takes_system_messages(source: str, takes: bool) -> None:
    assert ChatTemplate(source, {}, 999).takes_system is takes
