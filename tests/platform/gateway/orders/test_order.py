"""From a body to what an engine is asked for."""

from typing import Any

import pytest

from gateway.completions.body import CompletionBody
from gateway.orders.fields import SpeculativeConfig, StreamOptions
from gateway.orders.order import Order, order_of
from inference_engine.contract.codes import Code
from stand_ins.scripted_engine import description
from tenants.errors import Denied


def order(
    defaults: dict[str, float] | None = None,
    max_tokens: int | None = 8,
    num_prompts: int = 1,
    **fields: Any,
) -> Order:
    body = CompletionBody(model="scripted", prompt="x", **fields)
    return order_of(
        body,
        description(generation_defaults=defaults or {}),
        endpoint="/v1/completions",
        prompts=[[1]] * num_prompts,
        max_tokens=max_tokens,
        logprobs=body.logprobs,
        best_of=body.best_of,
    )


def test_plain_defaults() -> None:
    sampling = order().sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (1.0, 1.0, 0, 0.0)
    assert not sampling.ignore_eos and sampling.stop_token_ids == () and sampling.min_tokens == 0


def test_the_models_own_defaults_yield_to_the_clients_values() -> None:
    defaults = {"temperature": 0.2, "top_p": 0.9, "top_k": 40.0}
    sampling = order(defaults).sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.2, 0.9, 40)
    sampling = order(defaults, temperature=0.0, top_p=1.0, top_k=0).sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.0, 1.0, 0)


def test_a_top_k_of_minus_one_keeps_every_token() -> None:
    assert order({"top_k": 40.0}, top_k=-1).sampling.top_k == 0


def test_seeds_are_taken_or_drawn() -> None:
    assert order(seed=0).sampling.seed == 0
    assert order(seed=-(2**63)).sampling.seed == -(2**63)
    drawn = {order().sampling.seed for _ in range(50)}
    assert len(drawn) == 50
    assert all(-(2**63) <= seed < 2**63 for seed in drawn)


def test_stop_strings_and_ids() -> None:
    made = order(stop="a", stop_token_ids=[0, 999])
    assert (made.stop, made.sampling.stop_token_ids) == (("a",), (0, 999))


@pytest.mark.parametrize("token_ids", [[1000], [-1], [2**70]])
def test_stop_ids_outside_the_vocabulary(token_ids: list[int]) -> None:
    with pytest.raises(Denied) as denied:
        order(stop_token_ids=token_ids)
    assert (denied.value.code, denied.value.param) == (Code.TOKEN_ID_OUT_OF_RANGE, "stop_token_ids")


def test_more_min_tokens_than_max_tokens() -> None:
    with pytest.raises(Denied) as denied:
        order(min_tokens=9)
    assert denied.value.param == "min_tokens"
    assert order(min_tokens=9, max_tokens=None).sampling.min_tokens == 9


def test_stream_options_need_a_stream() -> None:
    with pytest.raises(Denied) as denied:
        order(stream_options=StreamOptions(include_usage=True))
    assert denied.value.param == "stream_options"
    assert order(stream=True, stream_options=StreamOptions(include_usage=True)).include_usage


def test_penalties_biases_and_bad_words() -> None:
    sampling = order().sampling
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0, 0, 1)
    assert (sampling.logit_bias, sampling.bad_words_ids) == ({}, ())
    sampling = order(
        presence_penalty=-2.0,
        frequency_penalty=1.5,
        repetition_penalty=1.1,
        logit_bias={"0": -100.0, "999": 2.0},
        bad_words_ids=[[4], [5, 6]],
    ).sampling
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (
        -2.0,
        1.5,
        1.1,
    )
    assert (sampling.logit_bias, sampling.bad_words_ids) == ({0: -100.0, 999: 2.0}, ((4,), (5, 6)))


def test_drafts_only_where_asked_for() -> None:
    assert order().sampling.num_draft_tokens == 0
    assert order(speculative_config=SpeculativeConfig("ngram")).sampling.num_draft_tokens == 8
    assert order(speculative_config=SpeculativeConfig("ngram", 3)).sampling.num_draft_tokens == 3


def test_choices_and_candidates() -> None:
    made = order(n=3)
    assert (made.num_choices, made.num_candidates, made.sampling.logprobs) == (3, 3, None)
    made = order(n=2, best_of=4)
    assert (made.num_choices, made.num_candidates) == (2, 4)
    assert (made.logprobs, made.sampling.logprobs) == (None, 0)
    assert order(n=2, best_of=4, logprobs=3).sampling.logprobs == 3
    assert order(n=64, num_prompts=2).num_choices == 64


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"n": 65, "num_prompts": 2}, "n"),
        ({"best_of": 65, "num_prompts": 2}, "best_of"),
    ],
)
def test_choices_that_can_not_be_made(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Denied) as denied:
        order(**fields)
    assert denied.value.param == param


@pytest.mark.parametrize(
    ("fields", "tier"),
    [
        ({}, None),
        ({"priority": 0, "service_tier": "default"}, "default"),
        ({"priority": 1}, "flex"),
        ({"priority": 9, "service_tier": "priority"}, "flex"),
    ],
)
def test_a_priority_only_steps_down(fields: dict[str, Any], tier: str | None) -> None:
    assert order(**fields).service_tier == tier
