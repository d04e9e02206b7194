"""Messages from an engine to a gateway."""

from msgspec import Struct, field

from .codes import Code, FinishReason
from .requests import Message

_CODES = frozenset(code.value for code in Code)


class Accepted(Message, frozen=True, tag="accepted", kw_only=True):
    """The request has a place. `max_tokens` is what is left after clamping to context and KV pool."""

    request_id: str
    attempt: int = 0
    prompt_tokens: int
    cached_tokens: int = 0
    """Prompt tokens whose KV was found in the tenant's prefix cache when the request entered the queue."""
    max_tokens: int


class TokenLogprobs(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Natural logarithms of the model's own distribution (before temperature and filters); always finite."""

    logprob: float
    top: list[tuple[int, float]] = []
    """(token id, logprob), the most likely first."""


class Delta(Message, frozen=True, tag="delta", kw_only=True):
    """The next output tokens of one request. Positions are contiguous; none is ever sent twice."""

    request_id: str
    attempt: int = 0
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None = None
    """One entry for each token id when the request asked for logprobs."""
    prompt_logprobs: list[TokenLogprobs] | None = None
    """With the first Delta, which may have no token ids, where asked for: of all the prompt but its first
    token."""


class Usage(Struct, frozen=True, omit_defaults=True, kw_only=True):
    prompt_tokens: int
    cached_tokens: int = 0
    output_tokens: int
    """All output ids of the request, replayed ones included."""


class Timeline(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where the time of one request went. Milliseconds since the engine received it."""

    queued_ms: float = 0.0
    """Until its first scheduled chunk."""
    first_token_ms: float | None = None
    finished_ms: float = 0.0
    num_chunks: int = 0
    num_preemptions: int = 0
    num_recomputed_tokens: int = 0


class Finished(Message, frozen=True, tag="finished", kw_only=True):
    """The last message about an accepted request."""

    request_id: str
    attempt: int = 0
    reason: FinishReason
    code: Code | None = None
    """Why, where the reason is `aborted` or `failed`."""
    stop_token_id: int | None = None
    """The end or stop id that was sampled; it is not among the output tokens sent."""
    usage: Usage
    timeline: Timeline = Timeline()
    vector: bytes = b""
    """Of a request that embeds and ended with `stop`: little-endian fp32, as many as the Description says."""


class Refused(Message, frozen=True, tag="refused", kw_only=True):
    """The only message about a request that was not accepted."""

    request_id: str
    attempt: int = 0
    code: Code
    """Never one that an older peer may not know."""
    message: str = ""
    param: str | None = None
    exact_code: str = ""
    """The one of `BROADER` that `code` stands for, if it does."""

    @property
    def reason(self) -> Code:
        """As exact as this side knows it."""
        return Code(self.exact_code) if self.exact_code in _CODES else self.code


class Embedding(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a model made for embeddings gives."""

    size: int
    """Numbers in a vector."""
    is_normalized: bool = False
    """Vectors are of length 1, and so should be what is cut off one."""


class Description(Message, frozen=True, tag="description", kw_only=True):
    """All that a gateway needs to serve the model with no model files of its own."""

    model: str
    revision: str
    """SHA-256 over the weight files: replay needs an equal one."""
    tokenizer_json: bytes
    """Empty where it is packed; `tokenizer_file.tokenizer_of` gives it either way."""
    tokenizer_zlib: bytes = b""
    tokenizer_hash: str
    chat_template: str | None = None
    tool_syntax: str = ""
    """How the model writes tool calls, one of tool_calls.SYNTAXES; empty: the chat template tells."""
    template_tokens: dict[str, str] = field(default_factory=dict)
    """The special tokens a chat template may name: bos_token, eos_token, ..."""
    special_ids: list[int] = field(default_factory=list)
    end_ids: list[int] = field(default_factory=list)
    """Union of generation config, tokenizer and chat template."""
    generation_defaults: dict[str, float] = field(default_factory=dict)
    """temperature, top_p, top_k where the model's generation config names them."""
    context_length: int
    vocab_size: int
    max_request_tokens: int
    """Prompt + output tokens of the largest request the KV pool can ever hold."""
    max_running: int
    dtype: str
    backend: str
    batch_invariant: bool
    fingerprint: str
    """Hash over weights, dtype and backend: equal ones give equal tokens for equal seeds."""
    created: int = 0
    """Unix seconds."""
    embedding: Embedding | None = None
    """None: the model generates text. Else it embeds, and does nothing else."""

    @property
    def min_output_tokens(self) -> int:
        """What must fit behind a prompt."""
        return 1 if self.embedding is None else 0


class Stats(Message, frozen=True, tag="stats", kw_only=True):
    """What an engine holds and what it has done since it started. Counters only rise."""

    num_waiting: int = 0
    num_running: int = 0
    waiting_tokens: int = 0
    """Tokens still to be prefilled by everything waiting or running."""
    blocks_total: int = 0
    blocks_free: int = 0
    blocks_cached: int = 0
    blocks_referenced: int = 0
    blocks_quarantined: int = 0
    num_steps: int = 0
    prompt_tokens: int = 0
    """Of several choices for one prompt it counts once, as it is billed; so do its cached tokens."""
    cached_prompt_tokens: int = 0
    output_tokens: int = 0
    num_accepted: int = 0
    num_refused: int = 0
    num_finished: int = 0
    num_aborted: int = 0
    num_failed: int = 0
    num_preemptions: int = 0
    num_recomputed_tokens: int = 0
    num_computed_tokens: int = 0
    """Recomputed ones included: recomputed / computed is the share of work lost to preemption."""
    num_drafted_tokens: int = 0
    """Guessed by prompt lookup and verified."""
    num_accepted_tokens: int = 0
    """Of those, that were what the model sampled: output tokens without a step of their own."""


class ObservedRow(Struct, frozen=True, omit_defaults=True, kw_only=True):
    tenant_id: str
    request_id: str
    start: int
    num_tokens: int
    samples: bool = False


class StepObserved(Message, frozen=True, tag="step_observed", kw_only=True):
    """One step's plan, and who holds the KV blocks after it. Goes to operators only: it names tenants."""

    step: int
    rows: list[ObservedRow]
    blocks_by_tenant: dict[str, int] = field(default_factory=dict)
    step_ms: float = 0.0


class Pong(Message, frozen=True, tag="pong", kw_only=True):
    nonce: int = 0
    step: int = 0


EngineMessage = Accepted | Delta | Finished | Refused | Description | Stats | StepObserved | Pong
