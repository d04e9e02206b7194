"""From settings to something that runs steps: runner, description, scheduler. Torch enters here or never."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from inference_engine.constraints.compiling import Compiler
from inference_engine.constraints.vocabulary import UnsupportedTokenizer, Vocabulary, load_vocabulary
from inference_engine.contract.events import Description
from inference_engine.contract.limits import BLOCK_SIZE, MAX_FRAME_BYTES
from inference_engine.contract.tokenizer_file import packed
from inference_engine.contract.wire import engine_frame
from inference_engine.execution.environment import prepare_environment
from inference_engine.execution.models.embedding_files import Pooling
from inference_engine.execution.models.model_files import ModelFiles
from inference_engine.scheduling.scheduler import Scheduler, SchedulerConfig
from inference_engine.simulation.fake_runner import FakeRunner, FakeSpeed

from .cores import available_cores
from .rehearsal import rehearse
from .runner import Runner
from .settings import Settings

if TYPE_CHECKING:
    from inference_engine.execution.model_runner import ModelRunner

log = structlog.get_logger(__name__)

Progress = Callable[[str, int, int], None]
"""(stage, done, total); total 0 where it isn't known."""


class StartupError(RuntimeError):
    """The settings and the model don't fit together."""


@dataclass(frozen=True, slots=True)
class Loaded:
    runner: Runner
    facts: dict[str, Any]
    """The runner's part of the Description: dtype, backend, batch_invariant, fingerprint."""
    compiler: Compiler | None = None
    """None: requests with constraints are refused."""


def load_runner(settings: Settings, files: ModelFiles, progress: Progress) -> Loaded:
    """Blocking, for minutes perhaps. Returns a runner that has been checked and warmed."""
    progress("loading", 0, 0)
    return _load_fake(settings, files) if settings.fake else _load_model(settings, files, progress)


def _load_fake(settings: Settings, files: ModelFiles) -> Loaded:
    blocks_a_request = -(-files.context_length // BLOCK_SIZE)
    runner = FakeRunner(
        num_blocks=settings.num_blocks or settings.max_running * blocks_a_request,
        vocab_size=files.vocab_size,
        avoid_ids=[*files.special_ids, *files.end_ids],
        end_id=files.end_ids[0] if files.end_ids else None,
        end_after=settings.fake_end_after,
        speed=FakeSpeed(step_ms=settings.fake_step_ms, token_us=settings.fake_token_us),
        vector_size=files.vector_size if files.embedding else 0,
    )
    fingerprint = hashlib.sha256(f"fake:{files.revision}".encode()).hexdigest()
    facts = {"dtype": "none", "backend": "fake", "batch_invariant": True, "fingerprint": fingerprint}
    return Loaded(runner, facts)


def _load_model(settings: Settings, files: ModelFiles, progress: Progress) -> Loaded:
    runner = _load_runner(settings, files)
    runner.warm(lambda done, total: progress("warming", done, total))
    progress("rehearsing", 0, 0)
    rehearse(runner, scheduler_config(settings, files, runner.num_blocks))
    vocabulary = _vocabulary(settings, files, runner.model.vocab_size)
    if vocabulary is None:
        return Loaded(runner, runner.description_fields())
    progress("grammars", 0, 0)
    runner.serve_constraints(vocabulary)
    compiler = Compiler(vocabulary, num_threads=settings.grammar_threads)
    compiler.start()
    return Loaded(runner, runner.description_fields(), compiler)


def _load_runner(settings: Settings, files: ModelFiles) -> "ModelRunner":
    threads = settings.threads or available_cores()
    prepare_environment(threads)  # before torch, which reads it, is imported
    from inference_engine.execution.device.device_runner import DeviceRunner
    from inference_engine.execution.embedding_runner import EmbeddingRunner
    from inference_engine.execution.model_runner import ModelRunner

    sizes: dict[str, Any] = {
        "backend": settings.backend,
        "dtype": settings.dtype,
        "context_length": files.context_length,
        "kv_bytes": settings.kv_bytes,
        "num_blocks": settings.num_blocks,
        "max_running": settings.max_running,
        "max_step_tokens": settings.max_step_tokens,
        "threads": threads,
    }
    if files.embedding is not None:
        if settings.uses_gpu:
            raise StartupError("embeddings are not served on a GPU")
        return EmbeddingRunner.load(files.directory, **sizes)
    if settings.uses_gpu:
        return DeviceRunner.load(files.directory, device=settings.device, split_kv=settings.split_kv, **sizes)
    return ModelRunner.load(files.directory, **sizes)


def _vocabulary(settings: Settings, files: ModelFiles, size: int) -> Vocabulary | None:
    """None where constraints aren't to be served or can't be; the log says why."""
    if not settings.grammar_threads or files.embedding is not None:
        return None
    try:
        return load_vocabulary(files.tokenizer_json, vocab_size=size, end_ids=files.end_ids)
    except UnsupportedTokenizer as error:
        log.warning("constraints_not_served", reason=str(error))
        return None


def describe(settings: Settings, files: ModelFiles, loaded: Loaded) -> Description:
    """Raises StartupError where the description could never be sent."""
    fields = {
        **files.description_fields(),
        "max_request_tokens": min(files.context_length, loaded.runner.num_blocks * BLOCK_SIZE),
        "max_running": settings.max_running,
        "tool_syntax": "" if settings.tool_syntax == "auto" else settings.tool_syntax,
        **loaded.facts,
    }
    if settings.model_name:
        fields["model"] = settings.model_name
    description = packed(Description(**fields))
    _check_vectors_fit(description)
    size = len(engine_frame([description], step=0, has_work=False))
    if size > MAX_FRAME_BYTES:
        raise StartupError(
            f"the tokenizer is too large to describe: a frame of {size} bytes, at most {MAX_FRAME_BYTES}"
        )
    return description


def _check_vectors_fit(description: Description) -> None:
    """All places may end in one step, and that is one frame."""
    embedding = description.embedding
    if embedding is None:
        return
    most = MAX_FRAME_BYTES // 2 // (4 * embedding.size)
    if description.max_running > most:
        raise StartupError(
            f"{description.max_running} vectors of {embedding.size} numbers don't fit into a frame: "
            f"max_running can be {most}"
        )


def make_scheduler(settings: Settings, files: ModelFiles, num_blocks: int) -> Scheduler:
    return Scheduler(scheduler_config(settings, files, num_blocks))


def _needs_every_row(files: ModelFiles) -> bool:
    """Rows that somebody else computed are in no sum of this request's."""
    return files.embedding is not None and files.embedding.pooling is Pooling.MEAN


def scheduler_config(settings: Settings, files: ModelFiles, num_blocks: int) -> SchedulerConfig:
    return SchedulerConfig(
        num_blocks=num_blocks,
        max_running=settings.max_running,
        max_step_tokens=settings.max_step_tokens,
        prefill_budget=settings.prefill_budget,
        bulk_tokens=settings.bulk_tokens,
        context_length=files.context_length,
        vocab_size=files.vocab_size,
        cache_secret=secrets.token_bytes(32),
        max_waiting=settings.max_waiting,
        policy=settings.policy,
        gap_targets=settings.gap_targets,
        ttft_targets=settings.ttft_targets,
        lag=settings.effective_lag,
        max_draft_tokens=settings.max_draft_tokens,
        enable_prefix_cache=settings.prefix_cache and not _needs_every_row(files),
        end_ids=frozenset(files.end_ids),
        embeds=files.embedding is not None,
    )
