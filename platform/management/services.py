"""Applies a configuration file: through the other rooms' services, all of it or nothing."""

from collections.abc import Iterator, Sequence

from django.core.exceptions import ValidationError
from django.db import transaction

from api_keys.models import ApiKey
from api_keys.services import update_key
from management.configuration.document import (
    KeyEntry,
    KeyLimitEntry,
    LimitEntry,
    TenantEntry,
    given_fields,
)
from management.configuration.yaml_source import Path, Source
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
        yield from _apply_limits(source, path, entry.limits, tenant, None, actor)
    for number, key in enumerate(entry.keys or ()):
        yield from _apply_key(source, (*path, "keys", number), key, tenant, actor)


def _apply_key(source: Source, path: Path, entry: KeyEntry, tenant: Tenant, actor: str) -> Iterator[str]:
    key = ApiKey.objects.filter(tenant=tenant, public_id=entry.id).first()
    if key is None:
        raise source.error(f"{tenant.slug} has no key {entry.id}", (*path, "id"))
    changes = {n: v for n, v in given_fields(entry).items() if v != getattr(key, n)}
    before = {name: getattr(key, name) for name in changes}
    try:
        if changes:
            update_key(key, actor=actor, **changes)
    except ValidationError as error:
        raise source.error(*_first_problem(error, path)) from None
    for name, value in changes.items():
        yield f"~ key {tenant.slug} {entry.id}: {name} {before[name]!r} -> {value!r}"
    if isinstance(entry.limits, list):
        yield from _apply_limits(source, path, entry.limits, tenant, key, actor)


def _apply_limits(
    source: Source,
    path: Path,
    wanted: Sequence[KeyLimitEntry],
    tenant: Tenant,
    key: ApiKey | None,
    actor: str,
) -> Iterator[str]:
    """Of one key, or of the tenant and its models."""
    existing = Limit.objects.filter(tenant=tenant, key=key)
    known = {(limit.kind, limit.model): limit for limit in existing}
    for number, entry in enumerate(wanted):
        model = entry.model if isinstance(entry, LimitEntry) else ""
        limit = known.pop((entry.kind, model), None)
        if limit is not None and (limit.value, limit.burst) == (entry.value, entry.burst):
            continue
        try:
            set_limit(tenant, entry.kind, entry.value, key=key, model=model, burst=entry.burst, actor=actor)
        except ValidationError as error:
            raise source.error(*_first_problem(error, (*path, "limits", number))) from None
        name = f"limit {tenant.slug} {entry.kind}{_of(key, model)}"
        if limit is None:
            yield f"+ {name}: {_amount(entry)}"
        else:
            yield f"~ {name}: {_amount(limit)} -> {_amount(entry)}"
    for limit in known.values():
        clear_limit(limit, actor=actor)
        yield f"- limit {tenant.slug} {limit.kind}{_of(key, limit.model)}: {_amount(limit)}"


def _of(key: ApiKey | None, model: str) -> str:
    if key is not None:
        return f" of key {key.public_id}"
    return f" of {model}" if model else ""


def _amount(limit: Limit | KeyLimitEntry) -> str:
    return str(limit.value) if limit.burst is None else f"{limit.value} (burst {limit.burst})"


def _listed(fields: dict[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in fields.items())


def _first_problem(error: ValidationError, path: Path) -> tuple[str, Path]:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages), path
    name, messages = next(iter(error.message_dict.items()))
    return " ".join(messages), path if name == "__all__" else (*path, name)
