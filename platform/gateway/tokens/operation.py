"""Tokenising in the OpenAPI document."""

from gateway.openapi.operation import READING, Operation
from gateway.tokens.body import (
    NEUTRAL_IN_TOKENIZE,
    DetokenizeBody,
    Detokenized,
    TokenizeBody,
    Tokenized,
)

STATUSES = (400, 408, *READING)

OPERATIONS = (
    Operation(
        method="POST",
        path="/tokenize",
        summary="A text or a conversation as token ids",
        body=TokenizeBody,
        answer=Tokenized,
        statuses=STATUSES,
        neutral=NEUTRAL_IN_TOKENIZE,
    ),
    Operation(
        method="POST",
        path="/detokenize",
        summary="Token ids as text",
        body=DetokenizeBody,
        answer=Detokenized,
        statuses=STATUSES,
    ),
)
