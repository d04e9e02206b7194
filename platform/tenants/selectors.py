"""Reads of tenants."""

from tenants.models import Tenant


def find_tenant(name_or_slug: str) -> Tenant | None:
    by_slug = Tenant.objects.filter(slug=name_or_slug).first()
    return by_slug or Tenant.objects.filter(name=name_or_slug).first()


def weights() -> dict[int, float]:
    """Shares of the engines, by tenant id."""
    return dict(Tenant.objects.values_list("pk", "weight"))
