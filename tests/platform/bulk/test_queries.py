"""Query parameters of the lists of files and batches."""

import pytest
from django.test import RequestFactory

from bulk.http.queries import Query
from tenants.errors import Denied


def asked(query: str) -> Query:
    return Query(RequestFactory().get(f"/v1/files?{query}"), "limit", "after")


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("100", 100), ("007", 7)])
def test_a_number_within_its_bounds(text: str, number: int) -> None:
    assert asked(f"limit={text}").number("limit", 20, 100) == number
    assert asked("").number("limit", 20, 100) == 20


@pytest.mark.parametrize("text", ["0", "101", "-1", "x", "", "1.0", "\u0661", "000000001999999", "9" * 5000])
def test_any_other_is_refused(text: str) -> None:
    """However many zeros are in front of it."""
    with pytest.raises(Denied) as refused:
        asked(f"limit={text}").number("limit", 20, 100)
    assert refused.value.param == "limit"


def test_a_text_without_nul() -> None:
    assert (asked("after=file-1").text("after"), asked("").text("after")) == ("file-1", None)
    with pytest.raises(Denied):
        asked("after=a%00").text("after")
