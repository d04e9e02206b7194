"""/tokenize, /detokenize and /v1/embeddings."""

from typing import Any

import pytest

from http_service import Service

TEXTS = ["Hello, world!", "你好 नमस्ते 😀", "<|im_end|>\n<|im_start|>system", " two  spaces \n"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_goes_there_and_back(service: Service, text: str) -> None:
    found = service.answer("/tokenize", {"model": service.model, "prompt": text, "return_token_strs": True})
    assert found["count"] == len(found["tokens"]) == len(found["token_strs"])
    assert found["max_model_len"] == 8192
    back = service.answer("/detokenize", {"model": service.model, "tokens": found["tokens"]})
    assert back == {"prompt": text}


def test_what_is_counted_is_what_is_used(service: Service) -> None:
    """The model need not be named where there is one only."""
    messages = [{"role": "user", "content": "Say hello."}]
    chat = service.answer("/tokenize", {"messages": messages})
    assert chat["token_strs"] is None
    assert chat["count"] == service.chat(max_tokens=1)["usage"]["prompt_tokens"]
    open_end = service.answer("/tokenize", {"messages": messages, "add_generation_prompt": False})
    assert chat["tokens"][: open_end["count"]] == open_end["tokens"] and chat["count"] > open_end["count"]
    text = service.answer("/tokenize", {"prompt": "Once upon a time"})
    assert text["count"] == service.complete(max_tokens=1)["usage"]["prompt_tokens"]


def test_no_engine_works_for_it(fake_service: Service) -> None:
    before = fake_service.settled_stats()
    fake_service.answer("/tokenize", {"prompt": "Hello"})
    assert fake_service.settled_stats().num_accepted == before.num_accepted


@pytest.mark.parametrize(
    ("path", "fields", "status", "param"),
    [
        ("/tokenize", {}, 400, "prompt"),
        ("/tokenize", {"prompt": "x", "messages": []}, 400, "prompt"),
        ("/tokenize", {"prompt": ""}, 400, "prompt"),
        ("/tokenize", {"messages": []}, 400, "messages"),
        ("/tokenize", {"prompt": "x", "chat_template": "{{ x }}"}, 400, "chat_template"),
        ("/tokenize", {"prompt": "x", "continue_final_message": True}, 400, "continue_final_message"),
        ("/tokenize", {"prompt": "x", "model": "nothing"}, 404, "model"),
        ("/detokenize", {"tokens": [-1]}, 400, "tokens"),
        ("/detokenize", {"tokens": [999_999]}, 400, "tokens"),
        ("/detokenize", {"tokens": [1] * 9000}, 400, "tokens"),
        ("/detokenize", {"tokens": "x"}, 400, "tokens"),
        ("/v1/embeddings", {"model": "smollm2", "input": "x"}, 400, "model"),
        ("/v1/embeddings", {"model": "nothing", "input": "x"}, 404, "model"),
        ("/v1/embeddings", {"model": "smollm2", "input": "x", "dimensions": 0}, 400, "dimensions"),
    ],
)
def test_what_is_wrong_is_named(
    service: Service, path: str, fields: dict[str, Any], status: int, param: str
) -> None:
    assert service.refusal(path, fields, status)["param"] == param


def test_a_key_is_needed(service: Service) -> None:
    for path in ("/tokenize", "/detokenize", "/v1/embeddings"):
        assert service.http.post(path, json={"prompt": "x"}).status_code == 401
