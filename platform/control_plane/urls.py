"""Everything that Django serves: the console. The generation endpoints are routed ahead of it, in asgi.py."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from console.workers import workers_page

urlpatterns = [
    path("admin/workers/", admin.site.admin_view(workers_page), name="workers"),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
