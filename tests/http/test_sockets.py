"""WebSocket /v1/responses: what a client sees of it, and what happens behind it. Cases 20, 28, 29 and 35."""

import itertools
import json
import threading
import time
from collections import defaultdict
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from http_service import Service
from octavo_stack import Stack
from revoking import create_key, revoke
from servers_of_tests import wait_until
from socket_client import CEILING_S, ENDINGS, opened, socket_url

LONG = {"max_output_tokens": 2000, "ignore_eos": True, "store": False}
SHORT = {"max_output_tokens": 8, "ignore_eos": True, "store": False, "seed": 5}


def deltas(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "response.output_text.delta"]


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    """In their order. One delta may tell of several tokens, so many in a row are as good as one."""
    return [kind for kind, _ in itertools.groupby(event["type"] for event in events)]


def text_of(event: dict[str, Any]) -> str:
    return str(event["response"]["output"][0]["content"][0]["text"])


# answers


def test_a_response_is_told_as_over_http(service: Service) -> None:
    body = {"model": service.model, "input": "Hello", "stream": True, **SHORT}
    over_http = service.stream("/v1/responses", body)
    with opened(service) as socket:
        socket.create(service.model, **SHORT)
        events = socket.until(*ENDINGS)
    assert events.pop(0)["type"] == "rate_limits.updated"
    assert kinds_of(events) == kinds_of(over_http.events)
    assert text_of(events[-1]) == text_of(over_http.events[-1]) != ""
    assert not any("stream_id" in event for event in events)


def test_streams_run_side_by_side_and_one_after_the_other(service: Service) -> None:
    """Two of one id: the second begins behind the first's end; the other id doesn't wait for either.

    The first is cancelled once the other id's is over.
    """
    with opened(service) as socket:
        socket.create(service.model, stream_id="a", **LONG)
        socket.create(service.model, stream_id="a", **SHORT)
        socket.create(service.model, stream_id="b", **SHORT)
        seen: list[tuple[str, str]] = []
        while sum(kind in ENDINGS for _, kind in seen) < 3:
            event = socket.receive()
            seen.append((event["stream_id"], event["type"]))
            if seen[-1] == ("b", "response.incomplete"):
                socket.send({"type": "response.cancel", "stream_id": "a"})
    of_a = [kind for stream, kind in seen if stream == "a" and kind in (*ENDINGS, "response.created")]
    assert of_a == ["response.created", "response.incomplete"] * 2
    order = [one for one in seen if one[1] in ENDINGS]
    assert order == [(name, "response.incomplete") for name in ("b", "a", "a")]


def test_a_conversation_goes_on_over_one_socket(service: Service) -> None:
    with opened(service) as socket:
        socket.create(service.model, **SHORT | {"store": True})
        first = socket.until(*ENDINGS)[-1]["response"]
        socket.create(service.model, "And then?", previous_response_id=first["id"], **SHORT)
        second = socket.until(*ENDINGS)[-1]["response"]
    assert second["previous_response_id"] == first["id"]
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"] + 8


# cancel and close


def test_case_35_cancel_is_obeyed_within_two_tokens(service: Service) -> None:
    """The second message is answered when the first has been obeyed; at most two tokens come behind it."""
    with opened(service) as socket:
        socket.create(service.model, stream_id="long", **LONG)
        seen: list[dict[str, Any]] = []
        while len(deltas(seen)) < 5:
            seen.append(socket.receive())
        socket.send({"type": "response.cancel", "stream_id": "long"})
        socket.send({"type": "response.cancel", "stream_id": "none"})
        seen += socket.until("error", "response.incomplete")
        num_before = len(deltas(seen))
        if seen[-1]["type"] == "error":
            seen += socket.until("response.incomplete")
        assert len(deltas(seen)) <= num_before + 2
        last = seen[-1]["response"] if seen[-1]["type"] == "response.incomplete" else {}
    assert (last["status"], last["incomplete_details"]) == ("cancelled", None)
    assert "".join(event["delta"] for event in deltas(seen)) == last["output"][0]["content"][0]["text"]
    if service.stack is not None:
        row = service.ledger_row(last["id"].replace("resp_", "req_"))
        assert (row["ending"], row["code"]) == ("aborted", "client_gone")
        assert row["output_tokens"] == last["usage"]["output_tokens"] < 1800


def test_cancel_by_response_id_and_the_socket_lives(service: Service) -> None:
    with opened(service) as socket:
        socket.create(service.model, **LONG)
        created = socket.until("response.created")[-1]["response"]
        socket.send({"type": "response.cancel", "response_id": created["id"]})
        assert socket.until(*ENDINGS)[-1]["response"]["status"] == "cancelled"
        socket.create(service.model, **SHORT)
        assert socket.until(*ENDINGS)[-1]["response"]["status"] == "incomplete"


def test_case_20_a_closed_socket_ends_its_responses(fake_service: Service) -> None:
    service, aborted = fake_service, fake_service.settled_stats().num_aborted
    with opened(service) as socket:
        ids = []
        for stream_id in ("a", "b"):
            socket.create(service.model, stream_id=stream_id, **LONG)
            ids.append(socket.until("response.created", stream_id=stream_id)[-1]["response"]["id"])
        socket.create(service.model, stream_id="b", **LONG)
        socket.until("response.output_text.delta", stream_id="b")
    for response_id in ids:
        row = service.ledger_row(response_id.replace("resp_", "req_"))
        assert (row["ending"], row["code"]) == ("aborted", "client_gone")
        assert row["prompt_tokens"] > 0 and row["output_tokens"] < 1800
    assert service.settled_stats().num_aborted == aborted + 2


# what is wrong


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("{", None),
        ("[1, 2]", None),
        ("17", None),
        ("{}", "type"),
        ('{"type": 5}', "type"),
        ('{"type": "response.steer"}', "type"),
        (b"\x00\x01", None),
        ('{"type": "response.create", "model": "m", "input": "\\ud83d"}', None),
        ('{"type": "response.create", "model": "m", "input": "x", "best_of": 2}', "best_of"),
        ('{"type": "response.create", "model": "m", "input": "x", "stream": false}', "stream"),
        ('{"type": "response.create", "model": "m", "input": "x", "background": true}', "background"),
        ('{"type": "response.cancel", "stream_id": "s"}', "response_id"),
        ("[" * 100_000, None),
    ],
)
def test_a_wrong_message_is_answered_and_the_socket_lives(
    service: Service, message: str | bytes, param: str | None
) -> None:
    with opened(service) as socket:
        socket.send(message)
        error = socket.receive()
        assert (error["type"], error["status"] in (400, 404)) == ("error", True)
        assert error["error"]["param"] == param and error["error"]["message"]
        socket.create(service.model, stream_id="after", **SHORT)
        socket.until("response.incomplete", stream_id="after")


def test_an_unknown_model_is_an_error_on_its_stream(service: Service) -> None:
    with opened(service) as socket:
        socket.create("nothing", stream_id="s")
        error = socket.receive()
    assert (error["type"], error["status"], error["stream_id"]) == ("error", 404, "s")
    assert error["error"]["code"] == "model_not_found"


def test_a_message_too_large_closes_the_socket(service: Service) -> None:
    """The last fragment is one byte, so that everything is read before the close."""
    with opened(service) as socket, pytest.raises(ConnectionClosed) as closed:
        socket.connection.send(["x" * 8 * 1024 * 1024, "x"])
        socket.receive()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def test_streams_beyond_the_limit_are_refused(service: Service) -> None:
    with opened(service) as socket:
        for number in range(33):
            socket.create(service.model, stream_id=str(number), **LONG)
        error = socket.until("error")[-1]
    assert (error["status"], error["error"]["code"], error["stream_id"]) == (429, "queue_full", "32")


# who may open one


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "", 401),
        ({"authorization": "Bearer octavo_wrong"}, "", 401),
        ({"authorization": "Bearer s\u00fc\u00df"}, "", 401),
        ({"authorization": "given"}, "/other", 404),
    ],
)
def test_case_29_refused_handshakes_have_a_proper_answer(
    service: Service, headers: dict[str, str], path: str, status: int
) -> None:
    if headers.get("authorization") == "given":
        headers = {"authorization": f"Bearer {service.key}"}
    with pytest.raises(InvalidStatus) as refused:
        connect(socket_url(service) + path, additional_headers=headers).__enter__()
    response = refused.value.response
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert b'"error"' in response.body


def test_a_ticket_opens_one_socket_for_a_known_page(service: Service) -> None:
    ticket = service.answer("/v1/realtime/tickets", {})
    offered: Any = {"subprotocols": ticket["protocols"], "additional_headers": {}}
    with pytest.raises(InvalidStatus) as refused, opened(service, origin="https://evil.example", **offered):
        raise AssertionError("opened")
    assert refused.value.response.status_code == 403
    with opened(service, origin=service.base_url, **offered) as socket:
        assert socket.connection.subprotocol == "octavo.responses"
        socket.create(service.model, **SHORT)
        assert socket.until(*ENDINGS)[-1]["type"] == "response.incomplete"
    with pytest.raises(InvalidStatus) as used, opened(service, origin=service.base_url, **offered):
        raise AssertionError("opened")
    assert used.value.response.status_code == 401


def test_case_28_a_revoked_key_ends_the_open_socket(fake_service: Service, fake_stack: Stack) -> None:
    """One that streams and one that is idle, each a second after the revocation where nothing else runs."""
    key = create_key(fake_stack, "bob")
    dana = Service(fake_stack.base_url, key, fake_stack.model, fake_stack)
    closed_at: dict[str, float] = {}
    heard: dict[str, str] = defaultdict(str)

    def wait_for_end(name: str, connection: Any) -> None:
        try:
            while True:
                heard[name] = connection.recv(timeout=CEILING_S)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None and closed.rcvd.code == 4401
            closed_at[name] = time.monotonic()

    with opened(dana) as idle, opened(dana) as busy:
        busy.create(dana.model, **LONG)
        events = busy.until("response.output_text.delta")
        threads = [
            threading.Thread(target=wait_for_end, args=(name, socket.connection))
            for name, socket in (("idle", idle), ("busy", busy))
        ]
        for thread in threads:
            thread.start()
        revoked_at = revoke(fake_stack, key)
        for thread in threads:
            thread.join(CEILING_S)
    assert json.loads(heard["idle"])["error"]["code"] == "invalid_api_key"
    assert max(closed_at[name] - revoked_at for name in ("idle", "busy")) < 10.0
    created = next(event for event in events if event["type"] == "response.created")
    row = fake_service.ledger_row(created["response"]["id"].replace("resp_", "req_"))
    assert (row["ending"], row["code"]) == ("aborted", "invalid_api_key")
    with pytest.raises(InvalidStatus) as refused, opened(dana):
        raise AssertionError("opened")
    assert refused.value.response.status_code == 401
    dana.close()


def test_a_client_that_does_not_read_gets_no_gap_and_a_code(fake_service: Service) -> None:
    """Its responses are ended once their queues are full; what it reads afterwards is whole up to there."""
    service = fake_service
    wide = {"include": ["message.output_text.logprobs"], "top_logprobs": 20, **LONG}
    ids: dict[str, str] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, dict[str, Any]] = {}
    aborted = service.settled_stats().num_aborted
    with opened(service, max_queue=1, ping_interval=None) as socket:
        for number in range(24):
            socket.create(service.model, stream_id=str(number), **wide)
        wait_until(lambda: service.engine_stats().num_aborted > aborted, "an aborted response", 60)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                event = socket.receive()
                stream = event.get("stream_id", "")
                if event["type"] == "response.created":
                    ids[stream] = event["response"]["id"]
                elif event["type"] == "response.output_text.delta":
                    texts[stream].append(event["delta"])
                elif event["type"] in ENDINGS and stream:
                    ends[stream] = event
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4408
    failed = {stream for stream, end in ends.items() if end["type"] == "response.failed"}
    assert failed
    for stream in failed:
        assert ends[stream]["response"]["error"]["code"] == "slow_reader"
        assert "".join(texts[stream]) == text_of(ends[stream])
        row = service.ledger_row(ids[stream].replace("resp_", "req_"))
        assert (row["ending"], row["code"]) == ("aborted", "slow_reader")
