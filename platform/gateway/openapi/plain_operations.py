"""Models, health and the document itself."""

from typing import Literal

from msgspec import Struct

from .operation import READING, Operation


class ModelObject(Struct, forbid_unknown_fields=True):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int


class ModelList(Struct, forbid_unknown_fields=True):
    object: Literal["list"]
    data: list[ModelObject]


class Health(Struct, forbid_unknown_fields=True):
    status: Literal["ok", "ready"]


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/models",
        summary="Models that this key may use",
        answer=ModelList,
        statuses=READING,
    ),
    Operation(
        method="GET",
        path="/v1/models/{model}",
        summary="One model; its id may hold slashes",
        answer=ModelObject,
        statuses=READING,
    ),
    Operation(
        method="GET",
        path="/health",
        summary="This process answers",
        answer=Health,
        statuses=(431, 503),
        is_public=True,
    ),
    Operation(
        method="GET",
        path="/ready",
        summary="A request would be served",
        answer=Health,
        statuses=(431, 503),
        is_public=True,
    ),
    Operation(
        method="GET",
        path="/metrics",
        summary="Figures for Prometheus",
        media_type="text/plain",
        statuses=(401, 404, 431, 500, 503),
        is_public=True,
    ),
    Operation(
        method="GET",
        path="/v1/openapi.json",
        summary="This document",
        statuses=(431, 500, 503),
        is_public=True,
    ),
)
