"""Changes of batches that somebody asks for. What the workers change is in execution/."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from api_keys.models import ApiKey
from api_keys.principal import Principal
from audit.services import record
from bulk.announcing import announce_finish, announce_validation
from bulk.batches.selectors import num_open
from bulk.files.selectors import find_file
from bulk.limits import COMPLETION_WINDOWS, ENDPOINTS
from bulk.models import Batch, BatchStatus, Purpose
from inference_engine.contract.codes import Code
from quotas.limits import LimitKind
from quotas.selectors import limit_of_tenant
from tenants.errors import Denied
from tenants.models import Tenant


def create_batch(
    principal: Principal,
    input_file_id: str,
    endpoint: str,
    completion_window: str,
    *,
    metadata: dict[str, str] | None = None,
    output_expires_after_s: int | None = None,
    address: str = "",
) -> Batch:
    """Raises Denied."""
    if endpoint not in ENDPOINTS:
        raise _invalid("endpoint", f"'endpoint' must be one of: {', '.join(ENDPOINTS)}.")
    if completion_window not in COMPLETION_WINDOWS:
        raise _invalid("completion_window", "'completion_window' must be '24h'.")
    file = find_file(int(principal.tenant_id), input_file_id)
    if file is None or file.purpose != Purpose.BATCH:
        raise _invalid("input_file_id", f"There is no file '{input_file_id}' with the purpose 'batch'.")
    batch = Batch(
        tenant_id=int(principal.tenant_id),
        api_key=ApiKey.objects.get(public_id=principal.key_id),
        address=address,
        endpoint=endpoint,
        completion_window=completion_window,
        metadata=metadata or {},
        input_file=file,
        output_expires_after_s=output_expires_after_s,
        expires_at=timezone.now() + COMPLETION_WINDOWS[completion_window],
    )
    return enter_batch(batch, actor=f"api_key:{principal.key_id}")


def enter_batch(batch: Batch, *, actor: str) -> Batch:
    """Save a new batch, unless its tenant has too many. Raises Denied."""
    with transaction.atomic():
        Tenant.objects.select_for_update().get(pk=batch.tenant_id)
        most = limit_of_tenant(batch.tenant_id, LimitKind.BATCHES) or settings.OCTAVO_BATCHES_PER_TENANT
        if num_open(batch.tenant_id) >= most:
            message = f"At most {most} batches of this account may be in flight."
            raise Denied(Code.CONCURRENCY_LIMIT_EXCEEDED, message, retry_after_s=60.0)
        batch.save()
        details = {"endpoint": batch.endpoint, "input_file": batch.input_file.public_id}
        record(actor, "batch.create", subject(batch), details, tenant_id=batch.tenant_id)
        transaction.on_commit(lambda: announce_validation(batch.pk))
    return batch


def cancel_batch(batch: Batch, *, actor: str = "system") -> Batch:
    """What is done is kept; what runs is stopped within seconds. Raises Denied for one that has ended."""
    with transaction.atomic():
        cancellable = (BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS)
        changed = Batch.objects.filter(pk=batch.pk, status__in=cancellable).update(
            status=BatchStatus.CANCELLING, cancelling_at=timezone.now()
        )
        batch.refresh_from_db()
        if changed:
            record(actor, "batch.cancel", subject(batch), tenant_id=batch.tenant_id)
            transaction.on_commit(lambda: announce_finish(batch.pk))
        elif batch.status not in (BatchStatus.CANCELLING, BatchStatus.CANCELLED):
            raise _invalid("batch_id", f"A batch that is {batch.get_status_display()} can't be cancelled.")
    return batch


def subject(batch: Batch) -> str:
    return f"batch:{batch.public_id}"


def _invalid(param: str, message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param=param)
