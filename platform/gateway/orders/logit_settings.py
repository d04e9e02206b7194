"""Fields of a body that change single logits, checked against the model's vocabulary."""

import re
from collections.abc import Sequence

from gateway.orders.fields import SharedFields
from inference_engine.contract.codes import Code
from tenants.errors import Denied

_PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def logit_bias_of(body: SharedFields, vocab_size: int) -> dict[int, float]:
    """JSON's keys are texts: each must be a token id in plain digits. Raises Denied."""
    bias = {_token_id(name): value for name, value in (body.logit_bias or {}).items()}
    check_token_ids(list(bias), vocab_size, "logit_bias")
    return bias


def bad_words_of(body: SharedFields, vocab_size: int) -> tuple[tuple[int, ...], ...]:
    """Raises Denied."""
    words = tuple(tuple(word) for word in body.bad_words_ids or ())
    check_token_ids([token_id for word in words for token_id in word], vocab_size, "bad_words_ids")
    return words


def check_token_ids(token_ids: Sequence[int], vocab_size: int, param: str) -> None:
    """Raises Denied: TOKEN_ID_OUT_OF_RANGE."""
    if token_ids and not (min(token_ids) >= 0 and max(token_ids) < vocab_size):
        message = f"'{param}' holds a token id outside of this model's 0 to {vocab_size - 1}."
        raise Denied(Code.TOKEN_ID_OUT_OF_RANGE, message, param=param)


def _token_id(name: str) -> int:
    if _PLAIN_NUMBER.fullmatch(name):
        return int(name)
    message = f"'logit_bias' maps token ids to numbers; {name[:40]!r} is no token id."
    raise Denied(Code.INVALID_REQUEST, message, param="logit_bias")
