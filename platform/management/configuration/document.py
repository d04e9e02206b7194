"""The configuration file's typed schema: tenants, each with its policy, its limits and what its keys may do.

What an entry doesn't name stays; null takes a restriction away. A tenant's `limits`, where given, are all of
its own and its models' limits, a key's all of that key: others are cleared. Keys are made elsewhere.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from quotas.limits import MAX_VALUE

Amount = Annotated[int, Meta(ge=1, le=MAX_VALUE)]
Tokens = Annotated[int, Meta(ge=1, le=2**31 - 1)]
ModelName = Annotated[str, Meta(min_length=1, max_length=200)]


class KeyLimitEntry(Struct, forbid_unknown_fields=True, frozen=True):
    kind: Literal[
        "concurrent",
        "queued",
        "requests_per_minute",
        "tokens_per_minute",
        "tokens_per_day",
        "tokens_per_month",
        "stored_bytes",
        "batches",
    ]
    value: Amount
    burst: Amount | None = None


class LimitEntry(KeyLimitEntry, forbid_unknown_fields=True, frozen=True):
    model: ModelName | Literal[""] = ""


class KeyEntry(Struct, forbid_unknown_fields=True, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=32)]
    allowed_models: list[ModelName] | UnsetType | None = UNSET
    allowed_networks: Annotated[list[str], Meta(min_length=1)] | UnsetType | None = UNSET
    limits: list[KeyLimitEntry] | UnsetType = UNSET


class TenantEntry(Struct, forbid_unknown_fields=True, frozen=True):
    slug: Annotated[str, Meta(pattern=r"^[-a-zA-Z0-9_]{1,64}$")]
    name: Annotated[str, Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    status: Literal["active", "suspended"] | UnsetType = UNSET
    service_class: Literal["interactive", "standard", "bulk"] | UnsetType = UNSET
    weight: Annotated[float, Meta(ge=0.01, le=1e6)] | UnsetType = UNSET
    max_output_tokens: Tokens | UnsetType | None = UNSET
    default_output_tokens: Tokens | UnsetType | None = UNSET
    max_context_tokens: Tokens | UnsetType | None = UNSET
    allowed_models: list[ModelName] | UnsetType | None = UNSET
    model_aliases: dict[str, ModelName] | UnsetType = UNSET
    features: list[str] | UnsetType | None = UNSET
    queue_timeout_seconds: Annotated[float, Meta(ge=0.1, le=1e6)] | UnsetType | None = UNSET
    time_zone: str | UnsetType = UNSET
    limits: list[LimitEntry] | UnsetType = UNSET
    keys: list[KeyEntry] | UnsetType = UNSET


class Document(Struct, forbid_unknown_fields=True, frozen=True):
    version: Literal[1]
    tenants: list[TenantEntry]


def given_fields(entry: TenantEntry | KeyEntry) -> dict[str, object]:
    """What the entry says of the tenant or the key itself."""
    names = (name for name in entry.__struct_fields__ if name not in {"slug", "id", "limits", "keys"})
    values = {name: getattr(entry, name) for name in names}
    return {name: value for name, value in values.items() if value is not UNSET}
