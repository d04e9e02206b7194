"""The decision as a table of cases: who, what, against which limits."""

from dataclasses import replace
from typing import Any

import pytest

from admission.decision import Admit, class_of, decide
from admission.facts import FleetFacts, FleetLoad, RequestFacts, Rules
from api_keys.networks import parse_networks
from api_keys.principal import Principal
from inference_engine.contract.codes import Code
from inference_engine.contract.requests import ServiceClass
from tenants.errors import Denied
from tenants.models import Feature

PLAIN = Principal("1", "Acme", "k", "key", ServiceClass.STANDARD, 1.0, False, 1)
REQUEST = RequestFacts("r", "m", "/v1/completions", prompt_tokens=100, max_tokens=50)
FLEET = FleetFacts(context_length=1000, max_request_tokens=600)
DEFAULT = 256


RULES = Rules(default_output_tokens=DEFAULT, shed_waiting=100)
BUSY = FleetLoad(num_ready=1, num_waiting=80)
INTERACTIVE, STANDARD, BULK = ServiceClass
HOME = parse_networks(["10.0.0.0/8"])


def decided(
    fleet: FleetFacts | None = FLEET, load: FleetLoad | None = None, rules: Rules = RULES, **changes: Any
) -> Admit | Denied:
    names = RequestFacts.__dataclass_fields__
    """`features` are what the tenant may use, `asks` what the request uses."""
    asks = frozenset(changes.pop("asks", ()))
    of_request = {k: v for k, v in changes.items() if k in names and k != "features"}
    request = replace(REQUEST, features=asks, **of_request)
    principal = replace(PLAIN, **{k: v for k, v in changes.items() if k not in of_request})
    return decide(principal, request, fleet, load, rules)


@pytest.mark.parametrize(
    ("changes", "code", "param", "retry_after_s"),
    [
        ({"is_suspended": True}, Code.INSUFFICIENT_PERMISSIONS, None, None),
        ({"is_suspended": True, "model": "other"}, Code.INSUFFICIENT_PERMISSIONS, None, None),
        ({"allowed_models": frozenset({"other"})}, Code.MODEL_NOT_FOUND, "model", None),
        ({"allowed_models": frozenset()}, Code.MODEL_NOT_FOUND, "model", None),
        ({"allowed_networks": HOME, "address": "192.0.2.1"}, Code.INSUFFICIENT_PERMISSIONS, None, None),
        ({"allowed_networks": HOME}, Code.INSUFFICIENT_PERMISSIONS, None, None),
        ({"prompt_tokens": 1000}, Code.CONTEXT_LENGTH_EXCEEDED, None, None),
        ({"prompt_tokens": 5000}, Code.CONTEXT_LENGTH_EXCEEDED, None, None),
        ({"prompt_tokens": 600}, Code.KV_POOL_EXCEEDED, None, None),
        ({"prompt_tokens": 999}, Code.KV_POOL_EXCEEDED, None, None),
        ({"max_context_tokens": 100}, Code.CONTEXT_LENGTH_EXCEEDED, None, None),
        ({"max_context_tokens": 5, "fleet": None}, Code.CONTEXT_LENGTH_EXCEEDED, None, None),
        (
            {"features": frozenset({Feature.LOGPROBS}), "asks": {Feature.TOOLS, Feature.LOGPROBS}},
            Code.INSUFFICIENT_PERMISSIONS,
            None,
            None,
        ),
        ({"features": frozenset(), "asks": {Feature.BULK}}, Code.INSUFFICIENT_PERMISSIONS, None, None),
        ({"rules": replace(RULES, maintenance="back at noon")}, Code.MAINTENANCE, None, 30.0),
        ({"load": FleetLoad(0)}, Code.NO_READY_REPLICA, None, 2.0),
        ({"load": BUSY}, Code.QUEUE_FULL, None, 2.0),
        ({"load": BUSY, "service_tier": "flex"}, Code.QUEUE_FULL, None, 2.0),
        ({"load": FleetLoad(1, 50), "service_tier": "flex"}, Code.QUEUE_FULL, None, 2.0),
        ({"load": FleetLoad(1, 50), "service_class": BULK}, Code.QUEUE_FULL, None, 2.0),
        ({"load": FleetLoad(1, 100), "service_class": INTERACTIVE}, Code.QUEUE_FULL, None, 2.0),
        ({"load": FleetLoad(0), "prompt_tokens": 1000}, Code.CONTEXT_LENGTH_EXCEEDED, None, None),
    ],
)
def test_denied(changes: dict[str, Any], code: Code, param: str | None, retry_after_s: float | None) -> None:
    denied = decided(**changes)
    assert isinstance(denied, Denied)
    assert (denied.code, denied.param, denied.retry_after_s) == (code, param, retry_after_s)


def test_a_refusal_names_the_limit_and_its_value() -> None:
    for changes, words in [
        ({"max_context_tokens": 100}, ["at most 100 tokens", "prompt alone has 100"]),
        ({"features": frozenset(), "asks": {Feature.TOOLS}}, ["may not use: tools"]),
        ({"load": BUSY}, ["80 requests wait", "standard", "below 75"]),
        ({"rules": replace(RULES, maintenance="back at noon")}, ["back at noon"]),
    ]:
        denied = decided(**changes)  # type: ignore[arg-type]
        assert isinstance(denied, Denied)
        assert all(word in denied.message for word in words), denied.message


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
        ({"allowed_networks": HOME, "address": "10.1.2.3"}, 50),
        ({"max_context_tokens": 120}, 20),
        ({"max_context_tokens": 101, "fleet": None}, 1),
        ({"max_tokens": None, "default_output_tokens": 33}, 33),
        ({"max_tokens": None, "default_output_tokens": 33, "max_output_tokens": 8}, 8),
        ({"features": frozenset({Feature.TOOLS}), "asks": {Feature.TOOLS}}, 50),
        ({"asks": set(Feature)}, 50),
        ({"load": FleetLoad(1, 74)}, 50),
        ({"load": BUSY, "service_class": INTERACTIVE}, 50),
        ({"load": FleetLoad(3, 0)}, 50),
    ],
)
def test_admitted_with_the_smallest_of_all_caps(changes: dict[str, Any], max_tokens: int) -> None:
    admitted = decided(**changes)
    assert isinstance(admitted, Admit) and admitted.max_tokens == max_tokens


@pytest.mark.parametrize(
    ("tier", "granted", "expected"),
    [
        (None, INTERACTIVE, INTERACTIVE),
        (None, BULK, BULK),
        ("auto", STANDARD, STANDARD),
        ("priority", INTERACTIVE, INTERACTIVE),
        ("priority", STANDARD, STANDARD),
        ("priority", BULK, BULK),
        ("default", INTERACTIVE, STANDARD),
        ("default", BULK, BULK),
        ("flex", INTERACTIVE, BULK),
        ("flex", BULK, BULK),
    ],
)
def test_a_tier_asks_for_a_class_but_never_above_the_tenants(
    tier: str | None, granted: ServiceClass, expected: ServiceClass
) -> None:
    assert class_of(tier, granted) is expected
    admitted = decided(service_tier=tier, service_class=granted)
    assert isinstance(admitted, Admit) and admitted.service_class is expected


def test_a_forbidden_model_and_an_absent_one_look_the_same() -> None:
    denied = decided(allowed_models=frozenset(), model="secret-model")
    assert isinstance(denied, Denied)
    assert denied.message == "The model 'secret-model' does not exist or you do not have access to it."
