"""/api/v1/batches/: a tenant's own, with progress and rate; cancelled and retried through the services."""

from audit.models import AuditRecord
from batch_rows import ended_batch, running_batch
from bulk.models import BatchStatus, LineState
from management_callers import Caller


def test_a_tenant_sees_and_cancels_its_own(alice: Caller, charlie: Caller, olga: Caller) -> None:
    assert alice.key is not None
    batch = running_batch(alice.key, 4)
    (listed,) = alice.get("batches/").json["results"]
    assert (listed["id"], listed["status"], listed["num_total"]) == (batch.public_id, "in_progress", 4)
    assert (listed["percent_done"], listed["key"]) == (0.0, alice.key.public_id)
    assert charlie.get("batches/").json["results"] == []
    path = f"batches/{batch.public_id}/"
    assert charlie.get(path).status == charlie.post(f"{path}cancel/").status == 404
    assert alice.post(f"{path}cancel/").json["status"] == "cancelling"
    assert olga.get("batches/?status=cancelling").json["results"][0]["id"] == batch.public_id
    assert olga.get("batches/?status=none").status == 400
    actors = AuditRecord.objects.filter(action="batch.cancel").values_list("actor", "tenant_id")
    assert list(actors) == [(f"api_key:{alice.key.public_id}", batch.tenant_id)]


def test_failed_lines_are_run_again(alice: Caller) -> None:
    assert alice.key is not None
    batch = ended_batch(alice.key, LineState.ANSWERED, LineState.FAILED)
    shown = alice.get(f"batches/{batch.public_id}/").json
    assert (shown["status"], shown["percent_done"], shown["num_failed"]) == ("completed", 100.0, 1)
    made = alice.post(f"batches/{batch.public_id}/retry/")
    assert (made.status, made.json["status"]) == (201, BatchStatus.VALIDATING)
    assert AuditRecord.objects.filter(action="batch.create", tenant_id=batch.tenant_id).exists()


def test_what_can_not_be_done_is_said(alice: Caller) -> None:
    assert alice.key is not None
    done = ended_batch(alice.key, LineState.ANSWERED)
    for act in ("cancel", "retry"):
        refused = alice.post(f"batches/{done.public_id}/{act}/")
        assert (refused.status, refused.error["code"]) == (400, "invalid_request")
    assert alice.post("batches/", {}).status == 405
