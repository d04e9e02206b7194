import pytest

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Accepted, Refused
from inference_engine.contract.requests import Constraint, ConstraintKind, TenantShare
from inference_engine.scheduling.step_plan import SampledToken


def code_of(answer: Accepted | Refused) -> Code:
    assert isinstance(answer, Refused), answer
    assert answer.message
    return answer.reason


def test_an_accepted_request_is_told_its_size_and_its_limit(engine):
    answer = engine().add("r", 10, max_tokens=20, attempt=3)
    assert answer == Accepted(request_id="r", attempt=3, prompt_tokens=10, cached_tokens=0, max_tokens=20)


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "clamped"), [(100, 2**31 - 1, 28), (127, 5, 1), (120, 8, 8)]
)
def test_max_tokens_is_clamped_to_the_context(engine, prompt, max_tokens, clamped):
    assert engine(context_length=128).add("r", prompt, max_tokens=max_tokens).max_tokens == clamped


def test_max_tokens_is_clamped_to_the_pool(engine):
    assert engine(num_blocks=4).add("r", 60, max_tokens=1000).max_tokens == 4


@pytest.mark.parametrize("prompt", [128, 500])
def test_a_prompt_that_leaves_no_room_in_the_context_is_refused(engine, prompt):
    answer = engine(context_length=128).add("r", prompt)
    assert code_of(answer) is Code.CONTEXT_LENGTH_EXCEEDED
    assert answer.param == "prompt_ids"


def test_a_prompt_that_fits_the_context_but_never_the_pool_is_refused_and_others_are_served(engine):
    small = engine(num_blocks=4)
    assert code_of(small.add("big", 64)) is Code.KV_POOL_EXCEEDED
    for number in range(5):
        small.add(f"short{number}", 8, max_tokens=1)
    assert len(small.step() + small.step()) == 5
    assert not small.scheduler.has_work()


def test_the_largest_request_that_fits_the_pool_is_served(engine):
    small = engine(num_blocks=4)
    small.add("r", 63, max_tokens=50)
    (update,) = small.step()
    assert update.finish == "length"


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": [5, 1000]},
        {"prompt": [-1, 5]},
        {"output_ids": [999_999]},
        {"stop_token_ids": (999_999,)},
        {"logit_bias": {5: 1.0, 1000: 1.0}},
        {"bad_words_ids": ((5, 6), (7, 1000))},
    ],
)
def test_token_ids_out_of_range_are_refused_by_name(engine, fields):
    answer = engine().add("r", **fields)
    assert code_of(answer) is Code.TOKEN_ID_OUT_OF_RANGE
    assert answer.param in {"prompt_ids", "output_ids", *fields}


def test_the_last_id_of_the_vocabulary_is_valid(engine):
    assert isinstance(engine().add("r", [0, 999], stop_token_ids=(999,)), Accepted)


def test_biases_and_bad_words_within_the_vocabulary_are_valid(engine):
    sampling = {"logit_bias": {0: -1.0, 999: 1.0}, "bad_words_ids": ((999,), (0, 999))}
    assert isinstance(engine().add("r", [1], **sampling), Accepted)


def test_bad_words_that_could_forbid_every_token_are_refused(engine):
    answer = engine(vocab_size=5).add("r", [1], bad_words_ids=((0,), (1,), (2,), (3,)), stop_token_ids=(4,))
    assert answer.code is Code.INVALID_REQUEST
    assert answer.param == "bad_words_ids"


def test_an_empty_prompt_is_refused(engine):
    assert code_of(engine().add("r", [])) is Code.INVALID_REQUEST


def test_a_request_id_in_use_is_refused_until_it_is_free_again(engine):
    small = engine()
    small.add("r", 10, max_tokens=1)
    assert code_of(small.add("r", 10, attempt=1)) is Code.DUPLICATE_REQUEST
    small.step()
    assert isinstance(small.add("r", 10), Accepted)


def test_a_constraint_is_refused_as_unsupported(engine):
    answer = engine().add("r", constraint=Constraint(kind=ConstraintKind.JSON_OBJECT))
    assert code_of(answer) is Code.UNSUPPORTED_FEATURE
    assert answer.param == "constraint"


def test_a_full_queue_refuses_and_opens_again(engine):
    small = engine(max_waiting=2, max_running=1)
    small.add("a", max_tokens=2)
    small.add("b")
    assert code_of(small.add("c")) is Code.QUEUE_FULL
    small.step()
    assert isinstance(small.add("c"), Accepted)


def test_a_tenants_own_queue_limits_bind_that_tenant_only(engine):
    small = engine()
    shares = {"alice": TenantShare(max_queued_requests=1), "bob": TenantShare(max_queued_tokens=25)}
    small.scheduler.set_tenant_shares(shares)
    assert isinstance(small.add("a1"), Accepted)
    assert code_of(small.add("a2")) is Code.TENANT_QUEUE_FULL
    assert isinstance(small.add("b1", 20, tenant_id="bob"), Accepted)
    assert code_of(small.add("b2", 6, tenant_id="bob")) is Code.TENANT_QUEUE_FULL
    assert isinstance(small.add("b3", 5, tenant_id="bob"), Accepted)
    small.step()
    assert isinstance(small.add("a3"), Accepted)


def test_a_queue_that_is_full_for_everybody_is_no_tenants_limit(engine):
    small = engine(max_waiting=1)
    small.scheduler.set_tenant_shares({"alice": TenantShare(max_queued_requests=1)})
    small.add("a1")
    assert code_of(small.add("a2")) is Code.QUEUE_FULL


def test_replayed_outputs_count_against_max_tokens(engine):
    small = engine()
    assert code_of(small.add("full", output_ids=[5, 6], max_tokens=2)) is Code.INVALID_REQUEST
    assert small.add("r", output_ids=[5, 6], max_tokens=3).max_tokens == 3
    (update,) = small.step(token=7)
    assert update.token_ids == [7] and update.finish == "length"
    assert update.request.output_ids == [5, 6, 7]


def test_refusals_leave_nothing_behind(engine):
    small = engine()
    small.add("r", [5000])
    small.scheduler.check_integrity()
    assert not small.scheduler.has_work()
    assert small.scheduler.stats().num_refused == 1


class FollowsAnything:
    """A matcher that the scheduler must keep and never ask."""

    num_consumed = 0

    def fill(self, row): ...

    def advance(self, token_id): ...

    def roll_back(self, num_tokens): ...


def test_a_constrained_request_keeps_its_matcher(engine, generate):
    small, matcher = engine(), FollowsAnything()
    constrained = generate("r", constraint=Constraint(kind=ConstraintKind.JSON_OBJECT))
    assert isinstance(small.scheduler.add(constrained, matcher), Accepted)
    assert small.scheduler.requests["r"].matcher is matcher


def test_an_early_refusal_is_the_one_of_add_whatever_the_constraint(engine, generate):
    small = engine(max_waiting=1, max_running=1)
    constrained = generate("r", constraint=Constraint(kind=ConstraintKind.JSON_OBJECT))
    assert small.scheduler.refuse_early(constrained) is None
    small.add("a")
    refused = small.scheduler.refuse_early(constrained)
    assert refused is not None and refused.code is Code.QUEUE_FULL
    assert small.scheduler.stats().num_refused == 1


def test_a_model_for_embeddings_refuses_what_wants_text_and_the_other_way_round(engine):
    assert code_of(engine().add("r", 10, embeds=True)) is Code.UNSUPPORTED_FEATURE
    assert code_of(engine(embeds=True).add("r", 10)) is Code.UNSUPPORTED_FEATURE
    assert isinstance(engine(embeds=True).add("r", 10, embeds=True), Accepted)


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ({"context_length": 64}, Code.CONTEXT_LENGTH_EXCEEDED),
        ({"num_blocks": 4}, Code.KV_POOL_EXCEEDED),
    ],
)
def test_nothing_needs_room_behind_a_text_that_is_embedded(engine, sizes, code):
    small = engine(embeds=True, **sizes)
    assert isinstance(small.add("fits", 64, embeds=True), Accepted)
    assert code_of(small.add("long", 65, embeds=True)) is code
    update = small.apply(small.plan(), SampledToken(-1, vector=b"abcd"))[0]
    assert (update.finish, update.vector, update.token_ids) == (FinishReason.STOP, b"abcd", [])
    assert small.scheduler.stats().output_tokens == 0
