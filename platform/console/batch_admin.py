"""Files and batches: how far they are, what is wrong, and the two things that an operator may do about it."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html

from bulk.batches.progress import lines_per_second, percent_done
from bulk.batches.retrying import retry_failed
from bulk.batches.services import cancel_batch
from bulk.files.services import delete_file
from bulk.files.storage import StorageUnavailable
from bulk.models import Batch, File
from console.acting import actor_of
from console.read_only import ReadOnlyAdmin
from tenants.errors import Denied

TIMES = (
    "created_at",
    "in_progress_at",
    "finalizing_at",
    "completed_at",
    "failed_at",
    "expired_at",
    "cancelling_at",
    "cancelled_at",
    "expires_at",
)


class ChangeableByAction(ReadOnlyAdmin):
    """No field can be edited; actions need the right to change."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"bulk.change_{self.opts.model_name}"))


@admin.register(Batch)
class BatchAdmin(ChangeableByAction):
    list_display = ("public_id", "tenant", "status", "progress", "num_failed", "rate", "created_at")
    list_filter = ("status",)
    list_select_related = ("tenant",)
    search_fields = ("public_id__exact", "tenant__slug__exact", "api_key__public_id__exact")
    search_help_text = "A batch's or a key's whole id, or a tenant's slug."
    fields = (
        *("public_id", "tenant", "api_key", "endpoint", "status", "progress", "rate"),
        *("num_total", "num_completed", "num_failed", "model", "prompt_tokens", "output_tokens"),
        *("input_file", "output_file", "error_file", "errors", "metadata", *TIMES),
    )
    actions = ("cancel", "retry")

    @admin.display(description="progress")
    def progress(self, batch: Batch) -> str:
        percent = f"{percent_done(batch):.0f}"
        done = batch.num_completed + batch.num_failed
        bar = '<progress max="100" value="{}" aria-label="{} %"></progress> {} of {}'
        return format_html(bar, percent, percent, done, batch.num_total)

    @admin.display(description="lines a second")
    def rate(self, batch: Batch) -> str:
        return f"{lines_per_second(batch, timezone.now()):.1f}"

    @admin.action(description="Cancel", permissions=["act"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Batch]) -> None:
        self._each(request, chosen, cancel_batch, "Cancelled; what is done is kept.")

    @admin.action(description="Run the failed lines again", permissions=["act"])
    def retry(self, request: HttpRequest, chosen: QuerySet[Batch]) -> None:
        related = chosen.select_related("tenant", "api_key", "input_file", "error_file")
        self._each(request, related, retry_failed, "A batch of the failed lines was started.")

    def _each(self, request: HttpRequest, chosen: QuerySet[Batch], act: Any, done: str) -> None:
        for batch in chosen:
            try:
                act(batch, actor=actor_of(request))
                self.message_user(request, f"{batch.public_id}: {done}", messages.SUCCESS)
            except (Denied, StorageUnavailable) as refused:
                self.message_user(request, f"{batch.public_id}: {refused}", messages.ERROR)


@admin.register(File)
class FileAdmin(ChangeableByAction):
    list_display = ("public_id", "tenant", "filename", "purpose", "num_bytes", "created_at", "expires_at")
    list_filter = ("purpose",)
    list_select_related = ("tenant",)
    search_fields = ("public_id__exact", "tenant__slug__exact")
    fields = (
        *("public_id", "tenant", "key_id", "filename", "purpose", "num_bytes"),
        *("created_at", "expires_at", "deleted_at"),
    )
    actions = ("remove",)

    @admin.action(description="Delete the content", permissions=["act"])
    def remove(self, request: HttpRequest, chosen: QuerySet[File]) -> None:
        for file in chosen:
            delete_file(file, actor=actor_of(request))
        self.message_user(request, "Deleted.", messages.SUCCESS)
