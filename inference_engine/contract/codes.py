"""Why something ended or was refused: one enum for the engine and for the door in front of it."""

from enum import StrEnum


class FinishReason(StrEnum):
    """How a request that was accepted ended."""

    STOP = "stop"
    """An end id or one of the request's own stop token ids was sampled."""
    LENGTH = "length"
    ABORTED = "aborted"
    """By an Abort message, by the end of its session, or by its deadline."""
    FAILED = "failed"


class Code(StrEnum):
    """Every refusal and failure a client can meet. The gateway maps each to a status and an error type."""

    # The request itself.
    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    UNSUPPORTED_PARAMETER = "unsupported_parameter"
    UNSUPPORTED_FEATURE = "unsupported_feature"
    TOKEN_ID_OUT_OF_RANGE = "token_id_out_of_range"  # noqa: S105
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    KV_POOL_EXCEEDED = "kv_pool_exceeded"
    """Fits the context, but can never fit this engine's KV pool."""
    TENANT_KV_SHARE_EXCEEDED = "tenant_kv_share_exceeded"
    """Fits the pool, but can never fit its tenant's part of that."""
    DUPLICATE_REQUEST = "duplicate_request"
    BODY_TOO_LARGE = "body_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    REQUEST_TIMEOUT = "request_timeout"
    """The body did not arrive in time."""
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"

    # Who asks, and for what.
    INVALID_API_KEY = "invalid_api_key"
    INSUFFICIENT_PERMISSIONS = "insufficient_permissions"
    MODEL_NOT_FOUND = "model_not_found"

    # Capacity that is contended: try again.
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    CONCURRENCY_LIMIT_EXCEEDED = "concurrency_limit_exceeded"
    INSUFFICIENT_QUOTA = "insufficient_quota"
    QUEUE_FULL = "queue_full"
    TENANT_QUEUE_FULL = "tenant_queue_full"
    """Its tenant has as many requests or tokens waiting in the engine as it may have."""
    QUEUE_TIMEOUT = "queue_timeout"

    # Capacity that is absent.
    NO_READY_REPLICA = "no_ready_replica"
    STORE_UNAVAILABLE = "store_unavailable"
    """Redis or the database can't be asked, so nothing is admitted."""
    DRAINING = "draining"
    MAINTENANCE = "maintenance"
    """The platform lets nothing new in for now."""

    # An accepted request that went wrong.
    ENGINE_LOST = "engine_lost"
    SLOW_READER = "slow_reader"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    CLIENT_GONE = "client_gone"
    NON_FINITE_LOGITS = "non_finite_logits"
    INTERNAL_ERROR = "internal_error"

    # The session itself.
    VERSION_MISMATCH = "version_mismatch"
    INVALID_FRAME = "invalid_frame"


BROADER: dict[Code, Code] = {
    Code.TENANT_KV_SHARE_EXCEEDED: Code.KV_POOL_EXCEEDED,
    Code.TENANT_QUEUE_FULL: Code.QUEUE_FULL,
}
"""Codes that peers of protocol version 1 need not know, and what stands for each in the field that they read:
a code unknown to them would make the whole frame unreadable."""
