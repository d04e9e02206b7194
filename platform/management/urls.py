"""/api/v1/: what control_plane/urls.py mounts. Whatever is not here is a 404 in the API's own shape."""

from django.urls import include, path, re_path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from management.audit_views import AuditTrail
from management.batch_views import Batches
from management.errors import Gone
from management.key_views import Keys
from management.limit_views import Limits
from management.permissions import IsCaller
from management.tenant_views import Tenants
from management.usage_views import Days, Hours, Requests, Totals


class Schema(SpectacularAPIView):
    """The OpenAPI document of this API."""

    permission_classes = (IsCaller,)


@extend_schema(exclude=True)
class Nothing(APIView):
    permission_classes = (IsCaller,)

    def get(self, request: Request) -> Response:
        raise Gone()

    post = put = patch = delete = get


router = SimpleRouter()
router.register("tenants", Tenants)
router.register("keys", Keys)
router.register("limits", Limits)
router.register("batches", Batches)
router.register("usage/requests", Requests, basename="usage-requests")
router.register("usage/hourly", Hours, basename="usage-hourly")
router.register("usage/daily", Days, basename="usage-daily")
router.register("audit", AuditTrail)

app_name = "management"
urlpatterns = [
    path("", include(router.urls)),
    path("usage/totals/", Totals.as_view({"get": "retrieve"}), name="usage-totals"),
    path("schema/", Schema.as_view(), name="schema"),
    re_path(r"^[\s\S]*$", Nothing.as_view(), name="nothing"),
]
