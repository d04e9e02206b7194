"""/api/v1/batches/: what runs for whom, how far it is, and the two things that may be done about it."""

from collections.abc import Callable
from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bulk.batches.retrying import retry_failed
from bulk.batches.selectors import with_files
from bulk.batches.services import cancel_batch
from bulk.files.storage import StorageUnavailable
from bulk.models import Batch
from management.batch_shapes import BatchQuery, BatchSerializer, filters_of
from management.errors import StoreUnavailable
from management.resources import Resource
from tenants.errors import Denied


class Batches(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    queryset = Batch.objects.all()
    serializer_class = BatchSerializer
    query_class = BatchQuery
    lookup_field = "public_id"
    lookup_url_kwarg = "id"
    lookup_value_regex = "batch_[0-9a-f]{1,32}"
    required: ClassVar = {
        "list": "bulk.view_batch",
        "retrieve": "bulk.view_batch",
        "cancel": "bulk.change_batch",
        "retry": "bulk.change_batch",
    }

    def get_queryset(self) -> QuerySet[Batch]:
        query = self.query()
        batches = with_files(Batch.objects.select_related("tenant", "api_key"))
        return batches.filter(**filters_of(query, self.chosen_tenant_id(query)))

    @extend_schema(parameters=[BatchQuery])
    def list(self, request: Request) -> Response:
        return super().list(request)

    @extend_schema(request=None, responses=BatchSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, id: str) -> Response:
        """What is done is kept; what runs is stopped within seconds."""
        return self._changed(cancel_batch)

    @extend_schema(request=None, responses={201: BatchSerializer})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, id: str) -> Response:
        """A new batch of the lines that failed, of the same key."""
        return self._changed(retry_failed, 201)

    def _changed(self, act: Callable[..., Batch], status: int = 200) -> Response:
        try:
            batch = act(self.get_object(), actor=self.actor)
        except Denied as denied:
            raise serializers.ValidationError(denied.message) from None
        except StorageUnavailable:
            raise StoreUnavailable() from None
        return Response(self.get_serializer(batch).data, status=status)
