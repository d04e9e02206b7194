"""What the door is told about a request and about who could serve it."""

from dataclasses import dataclass, field

from tenants.models import Feature


@dataclass(frozen=True, slots=True)
class RequestFacts:
    request_id: str
    """Unique; the ledger takes each id once."""
    model: str
    endpoint: str
    prompt_tokens: int
    max_tokens: int | None = None
    """Output tokens the client asks for; None where it names none."""
    user: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    service_tier: str | None = None
    """As the client names it."""
    features: frozenset[Feature] = frozenset()
    """What it uses beyond plain generation."""
    address: str = ""
    """Where it comes from; a key may be for some networks only."""


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Limits of the model on the replicas at hand (contract Description)."""

    context_length: int
    max_request_tokens: int
    """Prompt + output tokens of the largest request that the KV pool can ever hold."""


@dataclass(frozen=True, slots=True)
class FleetLoad:
    """How busy the replicas are that could serve the model (contract Stats)."""

    num_ready: int
    num_waiting: int = 0
    """Requests that wait in the queue of the least busy one."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the installation says, for every tenant alike."""

    default_output_tokens: int
    shed_waiting: int
    """Waiting requests of a replica at which the highest class is refused; lower classes earlier."""
    maintenance: str | None = None
    """The message of a maintenance that is on."""
