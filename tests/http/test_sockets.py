"""WebSocket /v1/responses: what a client sees of it."""

import pytest
from websockets.exceptions import InvalidStatus

from http_service import Service
from socket_client import ENDINGS, opened

LONG = {"max_output_tokens": 2000, "ignore_eos": True, "store": False}
SHORT = {"max_output_tokens": 8, "ignore_eos": True, "store": False, "seed": 5}


def test_a_response_is_told_as_over_http(service: Service) -> None:
    over_http = service.stream("/v1/responses", {"model": service.model, "input": "Hello", "stream": True, **SHORT})
    with opened(service) as socket:
        socket.create(service.model, **SHORT)
        events = socket.until(*ENDINGS)
    assert events.pop(0)["type"] == "rate_limits.updated"
    assert [event["type"] for event in events] == [event["type"] for event in over_http.events]
    texts = [event["response"]["output"] for event in (events[-1], over_http.events[-1])]
    assert texts[0][0]["content"] == texts[1][0]["content"]
