"""Texts of models, built once for each."""

import msgspec
import pytest

from gateway.runs.model_texts import ModelTexts
from inference_engine.contract.codes import Code
from stand_ins.tiny_text import byte_level_tokenizer, description
from tenants.errors import Denied


async def test_equal_descriptions_share_one_text() -> None:
    texts, described = ModelTexts(), description(byte_level_tokenizer())
    assert not texts.has(described)
    text = await texts.get(described)
    assert texts.has(described)
    again = msgspec.structs.replace(described, fingerprint="another replica")
    assert await texts.get(again) is text


async def test_a_model_that_changes_gets_a_new_text() -> None:
    texts, described = ModelTexts(), description(byte_level_tokenizer())
    text = await texts.get(described)
    changed = await texts.get(msgspec.structs.replace(described, chat_template="{{ messages }}"))
    assert changed is not text


async def test_a_text_that_can_not_be_served_is_a_denial() -> None:
    broken = msgspec.structs.replace(description(byte_level_tokenizer()), tokenizer_json=b"{}")
    texts, described = ModelTexts(), broken
    with pytest.raises(Denied) as denied:
        await texts.get(described)
    assert denied.value.code is Code.NO_READY_REPLICA
    assert not texts.has(described)
