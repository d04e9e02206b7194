"""/api/v1/audit/: what was changed, by whom. Read only."""

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit.models import AuditRecord
from audit.selectors import records_of
from management.fields import IdField
from management.resources import Query, Resource


class AuditRecordSerializer(serializers.ModelSerializer):
    tenant = IdField(source="tenant_id", allow_null=True)
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)

    class Meta:
        model = AuditRecord
        fields = (
            "id",
            "at",
            "actor",
            "action",
            "subject",
            "tenant",
            "before",
            "after",
            "request_id",
            "address",
            "previous_hash",
            "hash",
        )


class AuditQuery(Query):
    tenant = IdField(required=False)
    actor = serializers.CharField(required=False, max_length=160)
    action = serializers.CharField(required=False, max_length=64)
    subject = serializers.CharField(required=False, max_length=200)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class AuditTrail(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    queryset = AuditRecord.objects.all()
    serializer_class = AuditRecordSerializer
    query_class = AuditQuery
    lookup_value_regex = "[0-9]{1,18}"
    required: ClassVar = {"list": "audit.view_auditrecord", "retrieve": "audit.view_auditrecord"}

    def get_queryset(self) -> QuerySet[AuditRecord]:
        query = self.query()
        records = records_of(self.chosen_tenant_id(query))
        exact = {name: query[name] for name in ("actor", "action", "subject") if name in query}
        records = records.filter(**exact)
        if "since" in query:
            records = records.filter(at__gte=query["since"])
        return records.filter(at__lt=query["until"]) if "until" in query else records

    @extend_schema(parameters=[AuditQuery])
    def list(self, request: Request) -> Response:
        return super().list(request)
