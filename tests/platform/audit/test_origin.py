"""Request ids: ours on every answer, the client's only echoed."""

import pytest
from django.test import Client

from audit.origin import NOWHERE, current_origin

pytestmark = pytest.mark.usefixtures("transactional_db")


def test_every_answer_has_an_id_of_its_own() -> None:
    ids = {Client().get("/nowhere").headers["X-Request-Id"] for _ in range(3)}
    assert len(ids) == 3 and all(each.startswith("req_") for each in ids)
    assert current_origin() == NOWHERE


@pytest.mark.parametrize(("sent", "echoed"), [("mine-1", "mine-1"), ("é", None), ("x" * 513, None)])
def test_a_clients_id_is_echoed_if_it_can_be(sent: str, echoed: str | None) -> None:
    response = Client().get("/nowhere", headers={"X-Client-Request-Id": sent})
    assert response.headers.get("X-Client-Request-Id") == echoed
    assert response.headers["X-Request-Id"] != sent
