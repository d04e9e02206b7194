"""Where a matcher has to be before a step, and what becomes of it in one."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from inference_engine.constraints.building import build
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.masks import MaskFiller
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary, load_vocabulary
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import Constraint, ConstraintKind, Generate
from inference_engine.contract.sampling import SamplingParams
from inference_engine.execution.steps.constrained_rows import ConstrainedRows
from inference_engine.scheduling.output_matcher import OutputMatcher
from inference_engine.scheduling.request import Request
from inference_engine.scheduling.step_plan import PENDING_TOKEN, SampledToken, ScheduledChunk
from stand_ins.tiny_model import END_ID, VOCAB_SIZE
from stand_ins.tiny_text import byte_level_tokenizer

PROMPT = [1, 2, 3]
STOP = ord("z")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary(byte_level_tokenizer(), vocab_size=VOCAB_SIZE, end_ids=[END_ID])


@pytest.fixture(scope="module")
def filler(vocabulary: Vocabulary) -> Iterator[MaskFiller]:
    filler = MaskFiller(vocabulary, max_rows=4)
    yield filler
    filler.close()


@pytest.fixture
def matcher(vocabulary: Vocabulary) -> Matcher:
    grammar = grammar_of(Constraint(kind=ConstraintKind.REGEX, source="[a-z]{2,4}"), vocabulary)
    return Matcher(build(grammar, vocabulary.tokenizer), vocabulary)


def chunk(matcher: OutputMatcher | None, num_outputs: int, *, samples: bool = True) -> ScheduledChunk:
    """One whose sampled token is the request's output number `num_outputs`."""
    sampling = SamplingParams(seed=0, max_tokens=9, stop_token_ids=(STOP,))
    generate = Generate(request_id="r", prompt_ids=PROMPT, sampling=sampling, tenant_id="t")
    request = Request(generate, arrival=1, max_tokens=9, end_ids=frozenset([END_ID]))
    request.matcher = matcher
    start = len(PROMPT) + num_outputs - 1
    return ScheduledChunk(request, start, [PENDING_TOKEN], [0], samples)


def rows_of(filler: MaskFiller | None, *chunks: ScheduledChunk) -> ConstrainedRows:
    return ConstrainedRows(chunks, filler, VOCAB_SIZE)


def test_rows_count_only_chunks_that_sample(filler: MaskFiller, matcher: Matcher) -> None:
    with rows_of(filler, chunk(None, 0, samples=False), chunk(None, 0), chunk(matcher, 0)) as constrained:
        masks = constrained.masks()
    assert masks is not None and masks.rows == [1] and masks.failures == {}
    assert masks.allowed[0].nonzero().flatten().tolist()[:3] == [ord("a"), ord("b"), ord("c")]
    assert not masks.allowed[0, END_ID]


def test_a_step_without_constraints_has_no_masks() -> None:
    with rows_of(None, chunk(None, 0)) as constrained:
        assert constrained.masks() is None


def test_a_matcher_that_is_ahead_goes_back(filler: MaskFiller, matcher: Matcher) -> None:
    matcher.follow(b"abcd")
    with rows_of(filler, chunk(matcher, 2)) as constrained:
        masks = constrained.masks()
    assert matcher.num_consumed == 2
    assert masks is not None and masks.allowed[0, [ord("a"), END_ID]].all()


def test_one_that_is_behind_fails_its_row_and_is_left_alone(filler: MaskFiller, matcher: Matcher) -> None:
    """It ended or failed in the step before: never sampled as if there were no constraint."""
    matcher.follow(b"ab")
    with rows_of(filler, chunk(matcher, 3)) as constrained:
        masks = constrained.masks()
        constrained.advance({0: [SampledToken(ord("c"))]})
    assert masks is not None and masks.rows == [] and masks.failures == {0: Code.INTERNAL_ERROR}
    assert matcher.num_consumed == 2


@pytest.mark.parametrize(
    ("token", "num_consumed"),
    [
        (SampledToken(ord("b")), 2),
        (SampledToken(END_ID), 1),
        (SampledToken(STOP), 1),
        (SampledToken(PENDING_TOKEN, failure=Code.NON_FINITE_LOGITS), 1),
    ],
    ids=["output", "end", "stop", "failure"],
)
def test_only_tokens_of_the_output_are_consumed(
    filler: MaskFiller, matcher: Matcher, token: SampledToken, num_consumed: int
) -> None:
    matcher.follow(b"a")
    sampled = [token]
    with rows_of(filler, chunk(matcher, 1)) as constrained:
        constrained.masks()
        constrained.advance({0: sampled})
    assert matcher.num_consumed == num_consumed and sampled == [token]


def test_a_token_that_the_grammar_does_not_allow_fails_the_row(filler: MaskFiller, matcher: Matcher) -> None:
    sampled = [SampledToken(ord("A"))]
    with rows_of(filler, chunk(matcher, 0)) as constrained:
        constrained.masks()
        constrained.advance({0: sampled})
    assert sampled == [SampledToken(PENDING_TOKEN, failure=Code.INTERNAL_ERROR)]


class PastRepair:
    num_consumed = 3

    def fill(self, row: Any) -> None: ...

    def fill_drafts(self, draft_ids: Sequence[int], rows: Any) -> int: ...

    def advance(self, token_id: int) -> None: ...

    def roll_back(self, num_tokens: int) -> None:
        raise ConstraintError("past repair", code=Code.UNSUPPORTED_FEATURE)


def test_a_matcher_that_can_t_go_back_fails_alone(filler: MaskFiller, matcher: Matcher) -> None:
    with rows_of(filler, chunk(PastRepair(), 1), chunk(matcher, 0)) as constrained:
        masks = constrained.masks()
    assert masks is not None
    assert (masks.rows, masks.failures) == ([1], {0: Code.UNSUPPORTED_FEATURE})


def with_drafts(matcher: Matcher, num_outputs: int, drafts: Sequence[int]) -> ScheduledChunk:
    known = chunk(matcher, num_outputs)
    return ScheduledChunk(known.request, known.start, [7, *drafts], [0], True, len(drafts))


def test_drafts_are_masked_as_far_as_they_are_allowed(filler: MaskFiller, matcher: Matcher) -> None:
    """The row after a draft that isn't allowed has no mask, and is not to be looked at."""
    matcher.follow(b"a")
    drafted = with_drafts(matcher, 1, b"bcA")
    with rows_of(filler, chunk(None, 0), drafted) as constrained:
        masks = constrained.masks()
        assert constrained.num_usable(1, 4) == 3 and constrained.num_usable(0, 1) == 1
        constrained.advance({0: [SampledToken(1)], 1: [SampledToken(ord("b")), SampledToken(ord("x"))]})
    assert masks is not None and masks.rows == [1, 2, 3] and masks.failures == {}
    assert not masks.allowed[0, END_ID] and masks.allowed[1, END_ID]
    assert matcher.num_consumed == 3


def test_a_matcher_goes_back_to_where_the_drafts_begin(filler: MaskFiller, matcher: Matcher) -> None:
    matcher.follow(b"abc")
    with rows_of(filler, with_drafts(matcher, 1, b"bc")) as constrained:
        masks = constrained.masks()
    assert masks is not None and masks.rows == [0, 1, 2]
    assert matcher.num_consumed == 1
