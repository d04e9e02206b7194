"""Case 12: token ids in biases and bad words."""

from typing import Any

import pytest

from gateway.completions.body import CompletionBody
from gateway.orders.logit_settings import bad_words_of, logit_bias_of
from inference_engine.contract.codes import Code
from tenants.errors import Denied


def body(**fields: Any) -> CompletionBody:
    return CompletionBody(model="m", prompt="x", **fields)


def test_ids_of_the_vocabulary_are_taken() -> None:
    assert logit_bias_of(body(logit_bias={"0": 1.0, "999": -2.5}), 1000) == {0: 1.0, 999: -2.5}
    assert bad_words_of(body(bad_words_ids=[[0], [999, 1]]), 1000) == ((0,), (999, 1))
    assert (logit_bias_of(body(), 1000), bad_words_of(body(), 1000)) == ({}, ())


@pytest.mark.parametrize("name", ["999999", "-1", "1000", "9" * 18])
def test_ids_outside_of_it_are_refused(name: str) -> None:
    with pytest.raises(Denied) as denied:
        logit_bias_of(body(logit_bias={"5": 1.0, name: 1.0}), 1000)
    assert (denied.value.code, denied.value.param) == (Code.TOKEN_ID_OUT_OF_RANGE, "logit_bias")


@pytest.mark.parametrize(
    "name", ["-0", str(2**63), "x", "", " 5", "5 ", "05", "+5", "5.0", "1e2", "٣", "9" * 5000, "--5"]
)
def test_names_that_are_no_ids_are_refused(name: str) -> None:
    with pytest.raises(Denied) as denied:
        logit_bias_of(body(logit_bias={name: 1.0}), 1000)
    assert (denied.value.code, denied.value.param) == (Code.INVALID_REQUEST, "logit_bias")
    assert len(denied.value.message) < 200


@pytest.mark.parametrize("words", [[[1000]], [[5, -1]], [[2**70]]])
def test_bad_words_outside_of_it_are_refused(words: list[list[int]]) -> None:
    with pytest.raises(Denied) as denied:
        bad_words_of(body(bad_words_ids=words), 1000)
    assert (denied.value.code, denied.value.param) == (Code.TOKEN_ID_OUT_OF_RANGE, "bad_words_ids")
