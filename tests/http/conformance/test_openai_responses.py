"""The official client's Responses interface against a running server."""

from collections.abc import Iterator

import openai
import pytest

from http_service import Service

MORE = {"ignore_eos": True, "seed": 7}


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=service.base_url + "/v1", api_key=service.key, max_retries=0) as client:
        yield client


def test_create_and_stream_tell_the_same(client: openai.OpenAI, service: Service) -> None:
    fields = {"model": service.model, "input": "Say hello.", "max_output_tokens": 12, "extra_body": MORE}
    whole = client.responses.create(**fields)
    assert (whole.status, whole.object) == ("incomplete", "response")
    assert whole.incomplete_details is not None and whole.incomplete_details.reason == "max_output_tokens"
    assert whole.usage is not None and whole.usage.output_tokens == 12
    assert whole.usage.input_tokens_details.cached_tokens >= 0
    events = list(client.responses.create(stream=True, **fields))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text != ""
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == whole.output_text
