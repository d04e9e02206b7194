"""The vocabularies that constraints are tested with, and a compiler over the small one."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inference_engine.constraints.building import build
from inference_engine.constraints.compiling import Compiler
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.requests import Constraint, ConstraintKind, Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.models.model_files import load_model_files
from stand_ins.tiny_text import byte_level_tokenizer

MakeMatcher = Callable[..., Matcher]


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """256 bytes, four merges, three special tokens; the logits have five more ids than there are tokens."""
    tokenizer_json = byte_level_tokenizer()
    ids = {token["content"]: token["id"] for token in json.loads(tokenizer_json)["added_tokens"]}
    end_ids = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    return load_vocabulary(tokenizer_json, vocab_size=max(ids.values()) + 6, end_ids=end_ids)


@pytest.fixture(scope="session")
def smollm2_vocabulary(smollm2_dir: Path) -> Vocabulary:
    files = load_model_files(smollm2_dir)
    return load_vocabulary(files.tokenizer_json, vocab_size=files.vocab_size, end_ids=files.end_ids)


@pytest.fixture(scope="session")
def make_matcher(vocabulary: Vocabulary) -> MakeMatcher:
    def make(kind: ConstraintKind, source: Any = "") -> Matcher:
        grammar = grammar_of(a_constraint(kind, source), vocabulary)
        return Matcher(build(grammar, vocabulary.tokenizer), vocabulary)

    return make


@pytest.fixture(scope="session")
def standing_compiler(vocabulary: Vocabulary) -> Iterator[Compiler]:
    """Its clock stands still, so nothing is refused for having waited too long, however slow the machine."""
    compiler = Compiler(vocabulary, clock=lambda: 0.0)
    yield compiler
    compiler.close()


@pytest.fixture
def compiler(standing_compiler: Compiler) -> Compiler:
    """One that has compiled nothing."""
    standing_compiler._compiled.clear()
    return standing_compiler


@pytest.fixture
def a_request() -> Callable[..., Generate]:
    def make(kind: ConstraintKind, source: Any = "", **changes: Any) -> Generate:
        sampling = changes.pop("sampling", SamplingParams(seed=1, max_tokens=100))
        fields = {"request_id": "r", "prompt_ids": [1], "tenant_id": "alice", **changes}
        return Generate(sampling=sampling, constraint=a_constraint(kind, source), **fields)

    return make


def a_constraint(kind: ConstraintKind, source: Any) -> Constraint:
    return Constraint(kind=kind, source=source if isinstance(source, str) else json.dumps(source))
