"""Messages from a gateway to an engine. Each is a msgpack map with its tag under `type`."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from .limits import MAX_ID_LENGTH, MAX_PROMPT_TOKENS, MAX_TOKENS_PER_DELTA
from .sampling import SamplingParams, TokenId

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]


class ServiceClass(StrEnum):
    """Service classes, the most urgent first."""

    INTERACTIVE = "interactive"
    STANDARD = "standard"
    BULK = "bulk"


class ConstraintKind(StrEnum):
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    GRAMMAR = "grammar"
    TOOL_CALLS = "tool_calls"


class Constraint(Struct, frozen=True, kw_only=True):
    """What the output must match. `source` is the schema, expression or grammar as text; that of tool calls
    is made by `tool_calls.ToolCalls.constraint`."""

    kind: ConstraintKind
    source: str = ""


class Message(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Shape of every message, both directions: unknown fields are ignored, absent ones have defaults."""


class Generate(Message, frozen=True, tag="generate", kw_only=True):
    """Start one choice, or go on with one that another engine had begun (`output_ids` not empty)."""

    request_id: Id
    """Unique for each choice: n > 1 is n messages that share `group_id`."""
    attempt: Annotated[int, Meta(ge=0)] = 0
    prompt_ids: Annotated[list[TokenId], Meta(min_length=1, max_length=MAX_PROMPT_TOKENS)]
    output_ids: list[TokenId] = []
    """Output tokens emitted by earlier attempts; counted by max and min tokens and by positions."""
    choice: Annotated[int, Meta(ge=0)] = 0
    """Which of several for one prompt. The first counts the prompt in the engine's Stats, for all of them."""
    group_id: str = ""
    sampling: SamplingParams
    constraint: Constraint | None = None
    tenant_id: Id
    key_id: str = ""
    service_class: ServiceClass = ServiceClass.STANDARD
    weight: Annotated[float, Meta(gt=0)] = 1.0
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    """Milliseconds from receipt, so that clocks need not agree."""
    embeds: bool = False
    """Wanted is the prompt's vector, which comes with Finished, and no token. For models made for that, which
    do nothing else; an engine refuses what its model is not for."""
    reservation_key: str = ""
    """Where an engine whose session died writes its orphans' final usage."""
    tokens_per_delta: Annotated[int, Meta(ge=1, le=MAX_TOKENS_PER_DELTA)] = 1
    """The first token is sent at once, the others in Deltas of so many; what is left comes with the end. For
    whoever shows nobody what comes: each Delta costs both sides as much as several tokens."""


class Abort(Message, frozen=True, tag="abort", kw_only=True):
    request_id: Id
    attempt: Annotated[int, Meta(ge=0)] = 0


class Describe(Message, frozen=True, tag="describe", kw_only=True):
    """Ask for a Description."""


class Drain(Message, frozen=True, tag="drain", kw_only=True):
    """Refuse new requests with `draining`, finish the running ones, then stop."""

    deadline_ms: Annotated[int, Meta(ge=0)] = 30_000


class TenantShare(Struct, frozen=True, omit_defaults=True, kw_only=True):
    weight: Annotated[float, Meta(gt=0)] = 1.0
    max_kv_fraction: Annotated[float, Meta(gt=0, le=1)] = 1.0
    max_queued_requests: int | None = None
    max_queued_tokens: int | None = None


class SetTenantShares(Message, frozen=True, tag="set_tenant_shares", kw_only=True):
    """Replace the shares of the tenants named; others keep theirs."""

    shares: dict[str, TenantShare]


class Observe(Message, frozen=True, tag="observe", kw_only=True):
    """Ask for one StepObserved every `every` steps on this session; 0 stops them."""

    every: Annotated[int, Meta(ge=0)] = 1


class Ping(Message, frozen=True, tag="ping", kw_only=True):
    nonce: int = 0


GatewayMessage = Generate | Abort | Describe | Drain | SetTenantShares | Observe | Ping
