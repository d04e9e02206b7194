"""How the admin theme presents the console (settings.UNFOLD)."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _page(title: str, icon: str, name: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{name}")}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Octavo",
    "SITE_HEADER": "Octavo",
    "SITE_SYMBOL": "auto_stories",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("console/favicon.svg")}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {
                "title": "Customers",
                "items": [
                    _page("Tenants", "apartment", "tenants_tenant_changelist"),
                    _page("API keys", "key", "api_keys_apikey_changelist"),
                    _page("Limits", "speed", "quotas_limit_changelist"),
                    _page("Ledger", "receipt_long", "usage_ledgerentry_changelist"),
                    _page("Usage by hour", "schedule", "usage_hourlyusage_changelist"),
                    _page("Usage by day", "calendar_month", "usage_dailyusage_changelist"),
                ],
            },
            {
                "title": "Bulk jobs",
                "items": [
                    _page("Batches", "stacks", "bulk_batch_changelist"),
                    _page("Files", "description", "bulk_file_changelist"),
                ],
            },
            {
                "title": "Operation",
                "items": [
                    {"title": "Workers", "icon": "memory", "link": reverse_lazy("workers")},
                    _page("Audit", "history", "audit_auditrecord_changelist"),
                    _page("Operators", "person", "auth_user_changelist"),
                ],
            },
        ],
    },
}
