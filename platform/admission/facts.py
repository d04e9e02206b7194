"""What the door is told about a request and about who could serve it."""

from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Limits of the model on the replicas at hand (contract Description)."""

    context_length: int
    max_request_tokens: int
    """Prompt + output tokens of the largest request that the KV pool can ever hold."""
