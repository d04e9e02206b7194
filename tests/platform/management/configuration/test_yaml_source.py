"""What is wrong with a file is said with its line and its field."""

import pytest
from msgspec import UNSET

from management.configuration.document import given_fields
from management.configuration.yaml_source import ConfigurationError, Source

GOOD = """\
version: 1
tenants:
  - slug: acme
    name: Acme
    weight: 2
    max_output_tokens: null
    limits:
      - {kind: requests_per_minute, value: 60, burst: 5}
      - kind: concurrent
        model: m
        value: 4
  - slug: rival
"""


def test_a_good_file() -> None:
    acme, rival = Source(GOOD).document.tenants
    assert given_fields(acme) == {"name": "Acme", "weight": 2.0, "max_output_tokens": None}
    assert acme.limits is not UNSET and [limit.value for limit in acme.limits] == [60, 4]
    assert given_fields(rival) == {} and rival.limits is UNSET


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1", "version: 2", "line 1: version: "),
        ("version: 1\n", "", "line 1: Object missing required field `version`"),
        ("weight: 2", "weight: heavy", "line 5: tenants[0].weight: Expected `float"),
        ("weight: 2", "weight: 0", "line 5: tenants[0].weight: "),
        ("weight: 2", "weight: .inf", "line 5: tenants[0].weight: "),
        ("weight: 2", "weight: .nan", "line 5: tenants[0].weight: "),
        ("weight: 2", "wait: 2", "line 5: tenants[0].wait: Object contains unknown field `wait`"),
        ("weight: 2", "name: B", "line 5: name is here twice"),
        ("weight: 2", "weight: [2", "line 6: no YAML: "),
        ("name: Acme", "name: 2026-11-30", "line 4: tenants[0].name: Expected `str"),
        ("value: 60", "value: 0", "line 8: tenants[0].limits[0].value: "),
        ("value: 4", "value: 1.5", "line 11: tenants[0].limits[1].value: "),
        ("kind: concurrent", "kind: wishes", "line 9: tenants[0].limits[1].kind: "),
        (
            "kind: concurrent\n        model: m",
            "kind: requests_per_minute",
            "line 9: tenants[0].limits[1].kind: ",
        ),
        ("slug: rival", "slug: acme", "line 12: tenants[1].slug: acme is here twice"),
        ("slug: rival", "slug: a b", "line 12: tenants[1].slug: "),
        ("slug: rival", "name: Rival", "line 12: tenants[1]: Object missing required field `slug`"),
        (
            "max_output_tokens: null",
            "model_aliases: {a: 1}",
            "line 6: tenants[0].model_aliases: Expected `str",
        ),
    ],
)
def test_a_mistake_is_named(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        Source(GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "text", ["", "[]", "a: &a [*a]", "!!python/object:os.system {}", "\0", "- 1\n--- \n- 2", "[" * 5000]
)
def test_what_is_no_configuration_at_all(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Source(text)
