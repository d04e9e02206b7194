"""The decision as a table of cases: who, what, against which limits."""

from dataclasses import replace
from typing import Any

import pytest

from admission.decision import Admit, decide
from admission.facts import FleetFacts, RequestFacts
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ServiceClass
from tenants.errors import Denied

PLAIN = Principal("1", "Acme", "k", "key", ServiceClass.STANDARD, 1.0, False, 1)
REQUEST = RequestFacts("r", "m", "/v1/completions", prompt_tokens=100, max_tokens=50)
FLEET = FleetFacts(context_length=1000, max_request_tokens=600)
DEFAULT = 256


def decided(fleet: FleetFacts | None = FLEET, **changes: Any) -> Admit | Denied:
    names = RequestFacts.__dataclass_fields__
    request = replace(REQUEST, **{k: v for k, v in changes.items() if k in names})
    principal = replace(PLAIN, **{k: v for k, v in changes.items() if k not in names})
    return decide(principal, request, fleet, default_output_tokens=DEFAULT)


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"is_suspended": True}, Code.INSUFFICIENT_PERMISSIONS, None),
        ({"is_suspended": True, "model": "other"}, Code.INSUFFICIENT_PERMISSIONS, None),
        ({"allowed_models": frozenset({"other"})}, Code.MODEL_NOT_FOUND, "model"),
        ({"allowed_models": frozenset()}, Code.MODEL_NOT_FOUND, "model"),
        ({"prompt_tokens": 1000}, Code.CONTEXT_LENGTH_EXCEEDED, None),
        ({"prompt_tokens": 5000}, Code.CONTEXT_LENGTH_EXCEEDED, None),
        ({"prompt_tokens": 600}, Code.KV_POOL_EXCEEDED, None),
        ({"prompt_tokens": 999}, Code.KV_POOL_EXCEEDED, None),
    ],
)
def test_denied(changes: dict[str, Any], code: Code, param: str | None) -> None:
    denied = decided(**changes)
    assert isinstance(denied, Denied)
    assert (denied.code, denied.param, denied.retry_after_s) == (code, param, None)


@pytest.mark.parametrize(
    ("changes", "max_tokens"),
    [
        ({}, 50),
        ({"max_tokens": None}, DEFAULT),
        ({"max_tokens": 2147483647}, 500),
        ({"max_tokens": 10**18}, 500),
        ({"max_tokens": 10**18, "max_output_tokens": 30}, 30),
        ({"max_tokens": None, "max_output_tokens": 30}, 30),
        ({"max_tokens": 20, "max_output_tokens": 30}, 20),
        ({"max_tokens": None, "prompt_tokens": 590}, 10),
        ({"prompt_tokens": 599}, 1),
        ({"fleet": FleetFacts(context_length=120, max_request_tokens=600)}, 20),
        ({"fleet": None, "max_tokens": 10**6}, 10**6),
        ({"fleet": None, "max_tokens": None}, DEFAULT),
        ({"allowed_models": frozenset({"m", "other"})}, 50),
    ],
)
def test_admitted_with_the_smallest_of_all_caps(changes: dict[str, Any], max_tokens: int) -> None:
    assert decided(**changes) == Admit(max_tokens)


def test_a_forbidden_model_and_an_absent_one_look_the_same() -> None:
    denied = decided(allowed_models=frozenset(), model="secret-model")
    assert isinstance(denied, Denied)
    assert denied.message == "The model 'secret-model' does not exist or you do not have access to it."
