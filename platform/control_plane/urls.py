"""What Django serves: console and management API. Generation is routed ahead of it, in asgi.py."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from console.workers import workers_page

urlpatterns = [
    path("admin/workers/", admin.site.admin_view(workers_page), name="workers"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("management.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
