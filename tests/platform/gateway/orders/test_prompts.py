"""What a completion's prompt can be."""

import pytest

from gateway.orders.prompts import MAX_PROMPTS, split_prompts
from tenants.errors import Denied


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        ([1, 2], [[1, 2]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        (["a"] * MAX_PROMPTS, ["a"] * MAX_PROMPTS),
    ],
)
def test_every_kind(prompt: object, expected: object) -> None:
    assert split_prompts(prompt) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prompt",
    ["", [], [[]], [""], ["a", 1], [1, "a"], [[1], 2], ["a", [1]], [[1], []], ["a"] * (MAX_PROMPTS + 1)],
)
def test_what_it_can_not_be(prompt: object) -> None:
    with pytest.raises(Denied) as denied:
        split_prompts(prompt)  # type: ignore[arg-type]
    assert denied.value.param == "prompt"
