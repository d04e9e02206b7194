"""Settings of one engine process: command-line flags over OCTAVO_* variables over defaults."""

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from inference_engine.contract.requests import ServiceClass
from inference_engine.contract.tool_calls import SYNTAXES
from inference_engine.scheduling.policies import POLICIES

from .addresses import AddressError, check_exposure
from .class_targets import read_targets


class SettingsError(ValueError):
    """A setting that is missing, malformed or at odds with another one."""


VARIABLES = {
    "address": ("OCTAVO_ENGINE_ADDRESS",),
    "redis_url": ("OCTAVO_REDIS_URL", "REDIS_URL"),
    "threads": ("OCTAVO_ENGINE_THREADS",),
}
"""Where a variable isn't simply OCTAVO_ and the field's name: shared with other processes, or too general."""

LOG_LEVELS = ("debug", "info", "warning", "error")
_NOT_NEGATIVE = ("max_draft_tokens", "grammar_threads", "drain_s", "stall_s", "fake_step_ms", "fake_token_us")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_POSITIVE = (
    "max_running",
    "max_waiting",
    "max_step_tokens",
    "prefill_budget",
    "bulk_tokens",
    "outbox_frames",
    "outbox_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is a flag (`--max-running`) and a variable (`OCTAVO_MAX_RUNNING`); the flag wins."""

    model_dir: Annotated[Path, "folder with the model's files"]
    address: Annotated[str, "unix:/path, or host:port"]
    advertised_address: Annotated[
        str | None, "where gateways reach this engine; default: where it listens"
    ] = None
    model_name: Annotated[str | None, "name the model is served under; default: its folder's own name"] = None
    replica_id: Annotated[str, "unique name of this replica; default: host name and address"] = ""
    tool_syntax: Annotated[
        str, f"how the model writes tool calls: auto (its chat template tells), {', '.join(SYNTAXES)}"
    ] = "auto"
    redis_url: Annotated[str | None, "registry and orphans' usage; without it neither is written"] = None

    device: Annotated[str, "where the model runs: cpu, cuda or cuda:N"] = "cpu"
    backend: Annotated[str, "attention backend: auto, cpu, cpu-fallback, reference; on a GPU triton"] = "auto"
    split_kv: Annotated[bool, "GPU: spread a long context over processors; its rounding then varies"] = False
    dtype: Annotated[str, "auto, bfloat16, float32 or int8"] = "auto"
    threads: Annotated[int | None, "matrix threads; default: one a core"] = None
    context_length: Annotated[int | None, "tokens of prompt and output; default: what the model allows"] = (
        None
    )
    kv_bytes: Annotated[int | None, "size of the KV pool; default: from the memory there is"] = None
    num_blocks: Annotated[int | None, "KV blocks, instead of bytes"] = None
    max_running: Annotated[int, "requests that may hold KV blocks at once"] = 64
    max_waiting: Annotated[int, "requests that may queue before others are refused"] = 4096
    max_step_tokens: Annotated[int, "tokens in one step"] = 512
    prefill_budget: Annotated[int, "prefill tokens in a step beside running decodes"] = 80
    bulk_tokens: Annotated[int, "tokens of bulk in a step beside more urgent decodes"] = 4
    gap_targets_ms: Annotated[
        str, "between two tokens, by class: interactive=50,standard=200; default: none"
    ] = ""
    ttft_targets_ms: Annotated[str, "from arrival to the first token, by class; default: none"] = ""
    policy: Annotated[str, "who goes next: fair, fcfs or priority"] = "fair"
    prefix_cache: Annotated[bool, "reuse KV blocks of equal prompts of one tenant"] = True
    lag: Annotated[int | None, "steps that planning may run ahead: 0 or 1; default: 1 on a GPU, else 0"] = (
        None
    )
    max_draft_tokens: Annotated[int, "tokens a step that a request may guess by prompt lookup; 0: none"] = 8
    grammar_threads: Annotated[int, "threads that compile grammars; 0: no structured output"] = 2

    outbox_frames: Annotated[int, "unsent frames of one session before its requests are aborted"] = 1024
    outbox_tokens: Annotated[int, "unsent tokens of one session before its requests are aborted"] = 65_536
    drain_s: Annotated[float, "seconds that running requests get after SIGTERM"] = 30.0
    stall_s: Annotated[float, "seconds without a step, while work waits, before the process gives up"] = 30.0
    metrics_port: Annotated[int | None, "loopback port for Prometheus; 0 picks one; default: none"] = None
    die_with_parent: Annotated[bool, "exit when the process that started this one dies"] = False
    log_level: Annotated[str, "debug, info, warning or error"] = "info"

    tls_cert: Annotated[Path | None, "PEM chain of this engine"] = None
    tls_key: Annotated[Path | None, "PEM private key of this engine"] = None
    tls_ca: Annotated[Path | None, "PEM authorities whose clients are let in"] = None

    fake: Annotated[bool, "serve made-up tokens without a model, for load tests"] = False
    fake_step_ms: Annotated[float, "duration of a fake step"] = 10.0
    fake_token_us: Annotated[float, "and for each token in it"] = 0.0
    fake_end_after: Annotated[int | None, "sample an end id after this many outputs; default: never"] = None

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise SettingsError(f"policy is one of {', '.join(sorted(POLICIES))}")
        if self.tool_syntax not in ("auto", *SYNTAXES):
            raise SettingsError(f"tool_syntax is auto or one of {', '.join(SYNTAXES)}")
        if self.lag not in (None, 0, 1):
            raise SettingsError("lag is 0 or 1")
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1")
        if self.split_kv and not self.uses_gpu:
            raise SettingsError("split_kv needs a GPU as device")
        if self.context_length is not None and self.context_length < 1:
            raise SettingsError("context_length must be at least 1")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must not be negative")
        if self.log_level not in LOG_LEVELS:
            raise SettingsError(f"log_level is one of {', '.join(LOG_LEVELS)}")
        if self.max_step_tokens <= self.max_running:
            raise SettingsError(
                "max_step_tokens must be more than max_running: a token each, and some prefill"
            )
        if self.kv_bytes is not None and self.num_blocks is not None:
            raise SettingsError("kv_bytes and num_blocks exclude each other")
        for name in ("gap_targets_ms", "ttft_targets_ms"):
            self._targets(name)
        try:
            check_exposure(self.address, has_tls=self.has_tls)
        except AddressError as error:
            raise SettingsError(str(error)) from error

    @property
    def gap_targets(self) -> dict[ServiceClass, float]:
        """Seconds by class."""
        return self._targets("gap_targets_ms")

    @property
    def ttft_targets(self) -> dict[ServiceClass, float]:
        """Seconds by class."""
        return self._targets("ttft_targets_ms")

    def _targets(self, name: str) -> dict[ServiceClass, float]:
        try:
            return read_targets(getattr(self, name))
        except ValueError as error:
            raise SettingsError(f"{name}: {error}") from error

    @property
    def has_tls(self) -> bool:
        files = (self.tls_cert, self.tls_key, self.tls_ca)
        if any(files) and not all(files):
            raise SettingsError("mutual TLS needs all of tls_cert, tls_key and tls_ca")
        return all(files)

    @property
    def uses_gpu(self) -> bool:
        return self.device != "cpu"

    @property
    def effective_lag(self) -> int:
        return int(self.uses_gpu) if self.lag is None else self.lag

    @property
    def effective_replica_id(self) -> str:
        return self.replica_id or f"{socket.gethostname()}:{self.address}"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Raises SettingsError; argparse itself exits on unknown flags and for --help."""
    flags = {
        name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None
    }
    values = {**_from_environment(environment), **flags}
    types = get_type_hints(Settings)
    missing = [f.name for f in fields(Settings) if f.default is MISSING and f.name not in values]
    if missing:
        raise SettingsError("missing: " + ", ".join(f"--{name.replace('_', '-')}" for name in missing))
    return Settings(**{name: _convert(name, value, types[name]) for name, value in values.items()})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference_engine", description="One model replica.")
    for name, annotation in get_type_hints(Settings, include_extras=True).items():
        kind, text = get_args(annotation)
        action: Any = argparse.BooleanOptionalAction if kind is bool else "store"
        parser.add_argument("--" + name.replace("_", "-"), dest=name, action=action, default=None, help=text)
    return parser


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for setting in fields(Settings):
        names = VARIABLES.get(setting.name, (f"OCTAVO_{setting.name.upper()}",))
        value = next((environment[name] for name in names if environment.get(name)), None)
        if value is not None:
            found[setting.name] = value
    return found


def _convert(name: str, value: Any, annotation: Any) -> Any:
    if isinstance(value, bool):
        return value
    target = next((t for t in get_args(annotation) if t is not type(None)), annotation)
    try:
        return _boolean(value) if target is bool else target(value)
    except ValueError as error:
        raise SettingsError(f"{name}: {value!r} is not a valid {target.__name__}") from error


def _boolean(value: str) -> bool:
    word = value.lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(value)
    return word in _TRUE
