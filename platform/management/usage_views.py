"""/api/v1/usage/: single requests, sums by hour and by day, totals. Read only."""

from typing import ClassVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from management.pagination import NewestFirst
from management.resources import Resource
from management.selectors import Chosen, daily_rows, hourly_rows, ledger_rows, totals
from management.usage_shapes import (
    DaySerializer,
    HourSerializer,
    LedgerEntrySerializer,
    TotalsSerializer,
    UsageQuery,
)
from usage.models import DailyUsage, HourlyUsage, LedgerEntry

MAY_VIEW = "usage.view_ledgerentry"


class ByAdmission(NewestFirst):
    ordering: ClassVar = ("-admitted_at", "-id")


class ByHour(NewestFirst):
    ordering: ClassVar = ("-hour", "-id")


class ByDay(NewestFirst):
    ordering: ClassVar = ("-day", "-id")


class UsageResource(Resource):
    query_class = UsageQuery
    required: ClassVar = {"list": MAY_VIEW}

    def chosen(self) -> Chosen:
        """What is asked for, of what this caller sees."""
        query = self.query()
        tenant_id = self.chosen_tenant_id(query)
        return cast(Chosen, query if tenant_id is None else {**query, "tenant": tenant_id})

    @extend_schema(parameters=[UsageQuery])
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class Requests(mixins.RetrieveModelMixin, UsageResource):
    """One row per admitted request."""

    queryset = LedgerEntry.objects.all()
    serializer_class = LedgerEntrySerializer
    pagination_class = ByAdmission
    lookup_field = "request_id"
    lookup_value_regex = r"[^/\x00]{1,128}"
    required: ClassVar = {"list": MAY_VIEW, "retrieve": MAY_VIEW}

    def get_queryset(self) -> QuerySet[LedgerEntry]:
        if self.action == "list":
            return ledger_rows(self.chosen())
        tenant_id = self.caller.tenant_id
        return (
            LedgerEntry.objects.all()
            if tenant_id is None
            else LedgerEntry.objects.filter(tenant_id=tenant_id)
        )


class Hours(UsageResource):
    queryset = HourlyUsage.objects.all()
    serializer_class = HourSerializer
    pagination_class = ByHour

    def get_queryset(self) -> QuerySet[HourlyUsage]:
        return hourly_rows(self.chosen())


class Days(UsageResource):
    queryset = DailyUsage.objects.all()
    serializer_class = DaySerializer
    pagination_class = ByDay

    def get_queryset(self) -> QuerySet[DailyUsage]:
        return daily_rows(self.chosen())


class Totals(UsageResource):
    queryset = HourlyUsage.objects.none()
    serializer_class = TotalsSerializer
    pagination_class = None
    required: ClassVar = {"retrieve": MAY_VIEW}

    @extend_schema(parameters=[UsageQuery], operation_id="usage_totals_retrieve")
    def retrieve(self, request: Request) -> Response:
        chosen = self.chosen()
        return Response(self.get_serializer({**chosen, **totals(chosen)}).data)
