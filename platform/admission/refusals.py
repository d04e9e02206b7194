"""Why there was no room, in words: which limit, its value, and when to try again."""

from datetime import UTC, datetime

from admission.rate_headers import rate_headers
from inference_engine.contract.codes import Code
from quotas.limits import LimitKind, LimitRule, LimitScope
from quotas.outcomes import NoRoom, TooLarge
from tenants.errors import Denied

_WHOSE = {LimitScope.TENANT: "this account", LimitScope.KEY: "this API key"}
_UNITS = {
    LimitKind.REQUESTS_PER_MINUTE: "requests per minute",
    LimitKind.TOKENS_PER_MINUTE: "tokens per minute",
    LimitKind.TOKENS_PER_DAY: "tokens per day",
    LimitKind.TOKENS_PER_MONTH: "tokens per month",
}


def no_room(refused: NoRoom) -> Denied:
    rule, headers = refused.rule, rate_headers(refused.rates)
    wait_s = refused.retry_after_s
    if rule.kind is LimitKind.CONCURRENT:
        message = f"At most {rule.value} requests of {_whose(rule)} may run at once."
        return Denied(Code.CONCURRENCY_LIMIT_EXCEEDED, message, retry_after_s=wait_s, headers=headers)
    limit = f"{rule.value} {_UNITS[rule.kind]}"
    if refused.is_final:
        until = datetime.fromtimestamp(refused.now + wait_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        message = f"Quota of {_whose(rule)} used up: {limit}. The next period begins at {until}."
        return Denied(Code.INSUFFICIENT_QUOTA, message, retry_after_s=wait_s, headers=headers)
    message = f"Rate limit of {_whose(rule)} reached: {limit}."
    return Denied(Code.RATE_LIMIT_EXCEEDED, message, retry_after_s=wait_s, headers=headers)


def too_large(refused: TooLarge, tokens: int) -> Denied:
    """It would never fit, so there is no time to try again."""
    rule = refused.rule
    return Denied(
        Code.INSUFFICIENT_QUOTA,
        f"This request needs up to {tokens} tokens, output included; the whole limit of {_whose(rule)} is "
        f"{rule.value} {_UNITS[rule.kind]}.",
    )


def _whose(rule: LimitRule) -> str:
    return _WHOSE.get(rule.scope, f"the model '{rule.model}'")
