"""At the scheduler's door: what can never be served is refused here, by name, before it waits."""

from collections.abc import Sequence

from inference_engine.contract.codes import BROADER, Code
from inference_engine.contract.events import Refused
from inference_engine.contract.limits import BLOCK_SIZE
from inference_engine.contract.requests import Generate

from .config import SchedulerConfig
from .roster import Roster
from .shares import TenantShares


def refusal(
    generate: Generate, config: SchedulerConfig, roster: Roster, shares: TenantShares
) -> Refused | None:
    """Why this request can't be taken, or None."""
    return (
        _of_another_kind(generate, config)
        or _malformed(generate, config, roster)
        or _too_large(generate, config, shares)
        or _queue_full(generate, config, roster, shares)
    )


def unmatched(generate: Generate) -> Refused | None:
    """A constraint that nothing follows: never served as if there were none."""
    if generate.constraint is None:
        return None
    message = f"constraint {generate.constraint.kind.value} is not supported by this engine"
    return _refused(generate, Code.UNSUPPORTED_FEATURE, message, "constraint")


def clamped_max_tokens(generate: Generate, config: SchedulerConfig, shares: TenantShares) -> int:
    """Output tokens left to the request by context, pool and its tenant's part of that, replayed ones
    included. The vector of one that embeds counts as its token, but needs no room."""
    if generate.embeds:
        return 1
    most = min(config.max_request_tokens, shares.max_tokens(generate.tenant_id))
    return min(generate.sampling.max_tokens, most - len(generate.prompt_ids))


def _of_another_kind(generate: Generate, config: SchedulerConfig) -> Refused | None:
    if generate.embeds == config.embeds:
        return None
    made_for, instead = (
        ("embeddings", "it generates no text") if config.embeds else ("text", "it makes no embeddings")
    )
    return _refused(
        generate, Code.UNSUPPORTED_FEATURE, f"the model was made for {made_for}; {instead}", "model"
    )


def _malformed(generate: Generate, config: SchedulerConfig, roster: Roster) -> Refused | None:
    if generate.request_id in roster.by_id:
        return _refused(
            generate, Code.DUPLICATE_REQUEST, f"request {generate.request_id} is being served already"
        )
    if not generate.prompt_ids:
        return _refused(generate, Code.INVALID_REQUEST, "the prompt is empty", "prompt_ids")
    if _may_forbid_all(generate, config):
        message = "the bad words and stop ids could forbid every token"
        return _refused(generate, Code.INVALID_REQUEST, message, "bad_words_ids")
    return _out_of_range(generate, config.vocab_size)


def _may_forbid_all(generate: Generate, config: SchedulerConfig) -> bool:
    """Some token must be left to sample, whatever has come before."""
    sampling = generate.sampling
    num_forbidden = len(sampling.bad_words_ids) + len(sampling.stop_token_ids) + len(config.end_ids)
    return bool(sampling.bad_words_ids) and num_forbidden >= config.vocab_size


def _out_of_range(generate: Generate, vocab_size: int) -> Refused | None:
    sampling = generate.sampling
    named: tuple[tuple[str, Sequence[int]], ...] = (
        ("prompt_ids", generate.prompt_ids),
        ("output_ids", generate.output_ids),
        ("stop_token_ids", sampling.stop_token_ids),
        ("logit_bias", list(sampling.logit_bias)),
        ("bad_words_ids", [token_id for word in sampling.bad_words_ids for token_id in word]),
    )
    for param, ids in named:
        if ids and not (min(ids) >= 0 and max(ids) < vocab_size):
            message = f"token ids must be at least 0 and less than {vocab_size}"
            return _refused(generate, Code.TOKEN_ID_OUT_OF_RANGE, message, param)
    return None


def _too_large(generate: Generate, config: SchedulerConfig, shares: TenantShares) -> Refused | None:
    num_known, num_replayed = len(generate.prompt_ids) + len(generate.output_ids), len(generate.output_ids)
    if num_replayed >= generate.sampling.max_tokens:
        message = f"{num_replayed} output tokens are there already, of at most {generate.sampling.max_tokens}"
        return _refused(generate, Code.INVALID_REQUEST, message, "output_ids")
    num_needed = num_known if generate.embeds else num_known + 1
    verdict = "don't fit into" if generate.embeds else "leave no room for output in"
    if num_needed > config.context_length:
        message = f"{num_known} tokens {verdict} a context of {config.context_length}"
        return _refused(generate, Code.CONTEXT_LENGTH_EXCEEDED, message, "prompt_ids")
    if num_needed > config.max_request_tokens:
        message = (
            f"{num_known} tokens {verdict} this engine's KV pool of {config.num_blocks * BLOCK_SIZE} tokens"
        )
        return _refused(generate, Code.KV_POOL_EXCEEDED, message, "prompt_ids")
    most = shares.max_tokens(generate.tenant_id)
    if num_needed > most:
        message = f"{num_known} tokens {verdict} this tenant's part of the KV pool, {most} tokens"
        return _refused(generate, Code.TENANT_KV_SHARE_EXCEEDED, message, "prompt_ids")
    return None


def _queue_full(
    generate: Generate, config: SchedulerConfig, roster: Roster, shares: TenantShares
) -> Refused | None:
    if roster.num_waiting >= config.max_waiting:
        return _refused(generate, Code.QUEUE_FULL, f"{config.max_waiting} requests are waiting already")
    tenant = generate.tenant_id
    share = shares.get(tenant)
    if share is None:
        return None
    if (
        share.max_queued_requests is not None
        and roster.num_waiting_by_tenant[tenant] >= share.max_queued_requests
    ):
        message = f"{share.max_queued_requests} requests of this tenant are waiting already"
        return _refused(generate, Code.TENANT_QUEUE_FULL, message)
    num_tokens = roster.waiting_tokens_by_tenant[tenant] + len(generate.prompt_ids) + len(generate.output_ids)
    if share.max_queued_tokens is not None and num_tokens > share.max_queued_tokens:
        message = f"more than {share.max_queued_tokens} tokens of this tenant would be waiting"
        return _refused(generate, Code.TENANT_QUEUE_FULL, message)
    return None


def _refused(generate: Generate, code: Code, message: str, param: str | None = None) -> Refused:
    return Refused(
        request_id=generate.request_id,
        attempt=generate.attempt,
        code=BROADER.get(code, code),
        message=message,
        param=param,
        exact_code=code if code in BROADER else "",
    )
