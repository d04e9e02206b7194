"""The admin site's pages. They show and ask; every change is made by the services."""

from console import batch_admin, key_admin, limit_admin, operator_admin, record_admin, tenant_admin

__all__ = ["batch_admin", "key_admin", "limit_admin", "operator_admin", "record_admin", "tenant_admin"]
