"""Responses in the OpenAPI document."""

from gateway.openapi.operation import GENERATING, READING, Operation
from gateway.orders.neutral import ACCEPTED
from gateway.responses.body import NEUTRAL_IN_RESPONSES, ResponseBody
from gateway.responses.stored_endpoints import ItemListQuery

ONE = "/v1/responses/{response_id}"

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/responses",
        summary="A response, kept unless `store` is false",
        body=ResponseBody,
        has_events=True,
        statuses=GENERATING,
        neutral=NEUTRAL_IN_RESPONSES,
        accepted=ACCEPTED,
    ),
    Operation(method="GET", path=ONE, summary="A kept response", statuses=(400, *READING)),
    Operation(method="DELETE", path=ONE, summary="Delete a kept response", statuses=READING),
    Operation(
        method="POST", path=f"{ONE}/cancel", summary="End a response that is being made", statuses=READING
    ),
    Operation(
        method="GET",
        path=f"{ONE}/input_items",
        summary="What a kept response was asked with",
        query=ItemListQuery,
        statuses=(400, *READING),
    ),
)
