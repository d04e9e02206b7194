"""Applies a configuration file: through the other rooms' services, all of it or nothing."""

from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.db import transaction

from management.configuration.document import LimitEntry, TenantEntry, given_fields
from management.configuration.yaml_source import Path, Source
from quotas.limits import LimitScope
from quotas.models import Limit
from quotas.services import clear_limit, set_limit
from tenants.models import Tenant
from tenants.services import create_tenant, update_tenant


def apply_configuration(source: Source, *, dry_run: bool = False, actor: str = "system") -> list[str]:
    """The differences, a line each; none: nothing was to do. Raises ConfigurationError, nothing changed then.

    A dry run takes the same way and is rolled back, so that it finds every error too.
    """
    with transaction.atomic():
        slugs = [entry.slug for entry in source.document.tenants]
        found = Tenant.objects.select_for_update().filter(slug__in=slugs).order_by("pk")
        known = {tenant.slug: tenant for tenant in found}
        lines = [
            line
            for number, entry in enumerate(source.document.tenants)
            for line in _apply_tenant(source, ("tenants", number), entry, known.get(entry.slug), actor)
        ]
        transaction.set_rollback(dry_run)
    return lines


def _apply_tenant(
    source: Source, path: Path, entry: TenantEntry, tenant: Tenant | None, actor: str
) -> Iterator[str]:
    try:
        if tenant is None:
            fields = {"name": entry.slug, **given_fields(entry)}
            tenant = create_tenant(slug=entry.slug, actor=actor, **fields)  # type: ignore[arg-type]
            yield f"+ tenant {entry.slug}: {_listed(fields)}"
        else:
            changes = {n: v for n, v in given_fields(entry).items() if v != getattr(tenant, n)}
            before = {name: getattr(tenant, name) for name in changes}
            if changes:
                update_tenant(tenant, actor=actor, **changes)
            for name, value in changes.items():
                yield f"~ tenant {entry.slug}: {name} {before[name]!r} -> {value!r}"
    except ValidationError as error:
        raise source.error(*_first_problem(error, path)) from None
    if isinstance(entry.limits, list):
        yield from _apply_limits(source, path, entry.limits, tenant, actor)


def _apply_limits(
    source: Source, path: Path, wanted: list[LimitEntry], tenant: Tenant, actor: str
) -> Iterator[str]:
    existing = Limit.objects.filter(tenant=tenant).exclude(scope=LimitScope.KEY)
    known = {(limit.kind, limit.model): limit for limit in existing}
    for number, entry in enumerate(wanted):
        limit = known.pop((entry.kind, entry.model), None)
        if limit is not None and (limit.value, limit.burst) == (entry.value, entry.burst):
            continue
        try:
            set_limit(tenant, entry.kind, entry.value, model=entry.model, burst=entry.burst, actor=actor)
        except ValidationError as error:
            raise source.error(*_first_problem(error, (*path, "limits", number))) from None
        name = f"limit {tenant.slug} {entry.kind}{_of(entry.model)}"
        if limit is None:
            yield f"+ {name}: {_amount(entry)}"
        else:
            yield f"~ {name}: {_amount(limit)} -> {_amount(entry)}"
    for limit in known.values():
        clear_limit(limit, actor=actor)
        yield f"- limit {tenant.slug} {limit.kind}{_of(limit.model)}: {_amount(limit)}"


def _of(model: str) -> str:
    return f" of {model}" if model else ""


def _amount(limit: Limit | LimitEntry) -> str:
    return str(limit.value) if limit.burst is None else f"{limit.value} (burst {limit.burst})"


def _listed(fields: dict[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in fields.items())


def _first_problem(error: ValidationError, path: Path) -> tuple[str, Path]:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages), path
    name, messages = next(iter(error.message_dict.items()))
    return " ".join(messages), path if name == "__all__" else (*path, name)
