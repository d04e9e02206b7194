"""Celery's tasks. Each may come twice, late, or not at all: what they call sees to that."""

from threading import Event
from typing import Any

from celery import shared_task
from celery.signals import worker_process_shutdown
from django.db.models import QuerySet

from bulk.announcing import FINISH, RUN_CHUNK, VALIDATE, announce_finish
from bulk.batches.finishing import finish_batch
from bulk.batches.selectors import due_to_end
from bulk.batches.validation import validate_batch
from bulk.execution.chunk_run import run_chunk
from bulk.execution.dispatching import dispatch
from bulk.execution.event_loop import loop_thread, stop_loop_thread
from bulk.execution.worker_pulse import WorkerPulse
from bulk.files.services import purge_files
from bulk.models import Batch
from bulk.sweeping import sweep
from control_plane.celery import app

app.steps["consumer"].add(WorkerPulse)


@shared_task(name=VALIDATE)
def validate(batch_pk: int) -> None:
    if validate_batch(batch_pk):
        dispatch()
    _announce_ends(due_to_end().filter(pk=batch_pk))


@shared_task(name=RUN_CHUNK)
def run(chunk_pk: int) -> None:
    worker, is_half_done = loop_thread(), Event()
    running = worker.start(run_chunk(worker.services, worker.keeper, chunk_pk, is_half_done.set))
    is_half_done.wait()
    dispatch()
    running.result()
    dispatch()
    _announce_ends(due_to_end().filter(chunks=chunk_pk))


def _announce_ends(batches: "QuerySet[Batch]") -> None:
    for batch_pk in batches.values_list("pk", flat=True):
        announce_finish(batch_pk)


@shared_task(name=FINISH)
def finish(batch_pk: int) -> None:
    if finish_batch(batch_pk):
        dispatch()


@shared_task(name="bulk.sweep")
def sweep_lost_work() -> None:
    sweep()


@shared_task(name="bulk.purge")
def purge() -> None:
    while purge_files():
        pass


@worker_process_shutdown.connect
def _stop(**_: Any) -> None:
    stop_loop_thread()
