"""Items as a prompt: every shape of input, and what is left of it where it must be shortened."""

from typing import Any

import pytest

from gateway.responses.chat_messages import messages_of
from gateway.responses.ids import response_of_item
from gateway.responses.items import read_input
from gateway.responses.prompt import ConversationPrompt
from stand_ins.tiny_text import byte_level_tokenizer, description
from tenants.errors import Denied
from text.model_text import ModelText

NUMBER = "0123456789abcdef01234567"


def items_of(*given: Any) -> list[Any]:
    return read_input(list(given), NUMBER)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def output(number: int, text: str = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


def test_calls_join_what_was_said_and_outputs_are_tools_messages() -> None:
    parts = {"role": "assistant", "content": [{"type": "output_text", "text": "I call."}]}
    items = items_of(user("Ask."), parts, call(1), call(2), output(1), output(2))
    found = messages_of("Be brief.", items)
    assert [message["role"] for message in found] == ["system", "user", "assistant", "tool", "tool"]
    assert [one["id"] for one in found[2]["tool_calls"]] == ["c1", "c2"]
    assert found[2]["content"] == [{"type": "text", "text": "I call."}]
    assert found[3] == {"role": "tool", "tool_call_id": "c1", "content": "done"}


def test_every_item_has_an_id_that_names_its_response() -> None:
    items = items_of(user("a"), call(1), output(1))
    assert [item["id"].split("_")[0] for item in items] == ["msg", "fc", "fco"]
    assert {response_of_item(item["id"]) for item in items} == {f"resp_{NUMBER}"}
    assert response_of_item("msg_1") is None


@pytest.fixture(scope="module")
def text() -> ModelText:
    return ModelText.from_description(description(byte_level_tokenizer(), context_length=300))


@pytest.mark.parametrize("room", [60, 100, 200, 280])
async def test_as_many_of_the_last_items_as_fit_are_kept(text: ModelText, room: int) -> None:
    """Never more than fit, and one more wouldn't."""
    items = items_of(*(user(f"{number} " + "x" * (number % 7)) for number in range(40)))
    found = await ConversationPrompt(text, "Be brief.", items, None).shortened(room)
    assert len(found) <= room
    sizes = [0]
    while sizes[-1] <= room:
        prompt = ConversationPrompt(text, "Be brief.", items[-len(sizes) :], None)
        sizes.append(len(await prompt.whole()))
    assert len(found) == sizes[-2]


async def test_an_output_goes_with_its_call(text: ModelText) -> None:
    items = items_of(user("x" * 200), call(1), output(1, "y" * 60), user("end"))
    found = await ConversationPrompt(text, None, items, None).shortened(140)
    assert "y" not in text.decode(found) and "end" in text.decode(found)


async def test_one_item_that_does_not_fit_is_refused(text: ModelText) -> None:
    with pytest.raises(Denied) as denied:
        await ConversationPrompt(text, None, items_of(user("x" * 400)), None).shortened(100)
    assert denied.value.param == "input"
