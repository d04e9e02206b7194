"""From a body to what an engine is asked for."""

from typing import Any

import pytest

from gateway.bodies.completion_body import CompletionBody
from gateway.bodies.fields import StreamOptions
from gateway.order import Order, order_of
from inference_engine.contract.codes import Code
from stand_ins.scripted_engine import description
from tenants.errors import Denied


def order(defaults: dict[str, float] | None = None, max_tokens: int | None = 8, **fields: Any) -> Order:
    body = CompletionBody(model="scripted", prompt="x", **fields)
    described = description(generation_defaults=defaults or {})
    return order_of(
        body, described, endpoint="/v1/completions", prompts=[[1]], max_tokens=max_tokens, logprobs=None
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
