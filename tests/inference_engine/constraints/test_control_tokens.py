"""A text that spells a control token is a text in grammars too."""

import json
from typing import Any

import pytest

from inference_engine.constraints.building import build
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.requests import Constraint, ConstraintKind
from random_model import RandomModel
from stand_ins.tiny_text import byte_level_tokenizer, sentencepiece_tokenizer

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ORDINARY = ("<tool_call>", "</tool_call>", "octavo")
MERGES = (("<", "t"), ("<t", "ool_call>"), ("c", "a"), ("ca", "ll"), ("l", "l"))


def vocabulary_of(tokenizer_json: bytes, *end_tokens: str) -> Vocabulary:
    ids = {token["content"]: token["id"] for token in json.loads(tokenizer_json)["added_tokens"]}
    end_ids = [ids[content] for content in end_tokens]
    return load_vocabulary(tokenizer_json, vocab_size=600, end_ids=end_ids)


@pytest.fixture(scope="module")
def byte_level() -> Vocabulary:
    return vocabulary_of(byte_level_tokenizer(SPECIAL, ordinary=ORDINARY), "<|im_end|>", "<|endoftext|>")


@pytest.fixture(scope="module")
def sentencepiece() -> Vocabulary:
    return vocabulary_of(sentencepiece_tokenizer(), "</s>")


def check_written(vocabulary: Vocabulary, kind: ConstraintKind, source: str, expected: Any) -> None:
    grammar = grammar_of(Constraint(kind=kind, source=source), vocabulary)
    compiled = build(grammar, vocabulary.tokenizer)
    for seed in range(10):
        matcher = Matcher(compiled.deep_copy(), vocabulary)
        written = RandomModel(vocabulary, seed).write(matcher, 200)
        assert written.has_ended
        assert (written.text if kind is ConstraintKind.REGEX else json.loads(written.text)) == expected


@pytest.mark.parametrize("text", [*SPECIAL, *ORDINARY, "a<|im_end|>", "<tool_call>1</tool_call>"])
def test_a_constant_that_spells_control_tokens_is_written_out(byte_level: Vocabulary, text: str) -> None:
    check_written(byte_level, ConstraintKind.JSON_SCHEMA, json.dumps({"const": text}), text)
    check_written(byte_level, ConstraintKind.REGEX, text.replace("|", "[|]"), text)


@pytest.mark.parametrize("text", ["<s>", "</s>", "<unk>", "hi</s>", "[INST] ok [/INST]"])
def test_so_it_is_with_a_sentencepiece_vocabulary(sentencepiece: Vocabulary, text: str) -> None:
    check_written(sentencepiece, ConstraintKind.JSON_SCHEMA, json.dumps({"const": text}), text)


def test_the_name_of_a_property_may_spell_one(byte_level: Vocabulary) -> None:
    schema = {"type": "object", "properties": {"<tool_call>": {"const": 1}}, "required": ["<tool_call>"]}
    source = json.dumps({**schema, "additionalProperties": False})
    check_written(byte_level, ConstraintKind.JSON_SCHEMA, source, {"<tool_call>": 1})
