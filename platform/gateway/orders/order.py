"""What a client asks for, whichever endpoint it came through."""

import secrets
from dataclasses import dataclass, field

import msgspec

from gateway.orders.fields import MAX_CHOICES, SharedFields
from gateway.orders.logit_settings import bad_words_of, check_token_ids, logit_bias_of
from gateway.orders.tools import ToolUse
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from inference_engine.contract.requests import Constraint
from inference_engine.contract.sampling import SamplingParams
from tenants.errors import Denied
from text.errors import PromptError
from text.stop_strings import checked_stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    model: str
    endpoint: str
    prompts: list[list[int]]
    num_choices: int = 1
    """Of each prompt. Choice index = prompt index x num_choices + number of the choice."""
    num_candidates: int = 1
    """Made for each prompt; of more than num_choices the best are answered."""
    logprobs: int | None
    """As the client wants them; `sampling` may ask for some to choose by."""
    echoes: list[str] | None = None
    """Texts of the prompts, where they are to be part of the answer."""
    max_tokens: int | None
    """Output tokens of each choice; None where the client names none."""
    sampling: SamplingParams
    """Its max_tokens is set for each choice once the gate has spoken."""
    constraint: Constraint | None = None
    tools: ToolUse | None = None
    stop: tuple[str, ...]
    include_stop: bool
    skip_special_tokens: bool
    stream: bool
    include_usage: bool
    return_token_ids: bool
    service_tier: str | None
    user: str
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def constraint_param(self) -> str:
        """What the client knows the constraint by."""
        if self.tools is not None and self.tools.is_forced:
            return "tools"
        return "text.format" if self.endpoint == "/v1/responses" else "response_format"


def order_of(
    body: SharedFields,
    description: Description,
    *,
    endpoint: str,
    prompts: list[list[int]],
    max_tokens: int | None,
    logprobs: int | None,
    best_of: int | None = None,
    echoes: list[str] | None = None,
    constraint: Constraint | None = None,
    tools: ToolUse | None = None,
) -> Order:
    """Raises Denied."""
    _check_stream(body)
    num_choices, num_candidates = _counts(body, len(prompts), best_of)
    return Order(
        model=description.model,
        endpoint=endpoint,
        prompts=prompts,
        num_choices=num_choices,
        num_candidates=num_candidates,
        logprobs=logprobs,
        echoes=echoes,
        max_tokens=max_tokens,
        sampling=_with_logprobs(
            _sampling(body, description, max_tokens), logprobs, num_candidates > num_choices, echoes
        ),
        constraint=constraint,
        tools=tools,
        stop=_stops(body),
        include_stop=bool(body.include_stop_str_in_output),
        skip_special_tokens=body.skip_special_tokens is not False,
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        return_token_ids=bool(body.return_token_ids),
        service_tier="flex" if body.priority else body.service_tier,
        user=body.user or "",
        metadata=body.metadata or {},
    )


def _check_stream(body: SharedFields) -> None:
    if body.stream_options is not None and not body.stream:
        raise _invalid("stream_options", "'stream_options' is only allowed when 'stream' is true.")


def _with_logprobs(
    sampling: SamplingParams, logprobs: int | None, is_choosing: bool, echoes: list[str] | None
) -> SamplingParams:
    """Candidates are chosen by logprobs even if the client wants to see none."""
    return msgspec.structs.replace(
        sampling,
        logprobs=0 if logprobs is None and is_choosing else logprobs,
        prompt_logprobs=None if echoes is None else logprobs,
    )


def _counts(body: SharedFields, num_prompts: int, best_of: int | None) -> tuple[int, int]:
    """Choices and candidates of each prompt. Raises Denied."""
    num_choices = body.n or 1
    num_candidates = num_choices if best_of is None else best_of
    if num_candidates < num_choices:
        raise _invalid("best_of", f"'best_of' ({best_of}) is less than 'n' ({num_choices}).")
    if body.stream and num_candidates > num_choices:
        raise _invalid("best_of", "'best_of' can't be streamed: the best is known at the end.")
    if num_prompts * num_candidates > MAX_CHOICES:
        param = "n" if best_of is None else "best_of"
        message = f"{num_prompts} prompts with {num_candidates} choices each are more than {MAX_CHOICES}."
        raise _invalid(param, message)
    return num_choices, num_candidates


def _sampling(body: SharedFields, description: Description, max_tokens: int | None) -> SamplingParams:
    """The model's own defaults where the client names no value; a seed is drawn where it names none."""
    defaults = description.generation_defaults
    temperature = body.temperature if body.temperature is not None else defaults.get("temperature", 1.0)
    top_k = body.top_k if body.top_k is not None else int(defaults.get("top_k", 0))
    return SamplingParams(
        seed=body.seed if body.seed is not None else secrets.randbits(64) - 2**63,
        max_tokens=1,
        min_tokens=_min_tokens(body, max_tokens),
        temperature=min(temperature, 2.0),
        top_p=body.top_p if body.top_p is not None else defaults.get("top_p", 1.0),
        top_k=max(top_k, 0),
        min_p=body.min_p or 0.0,
        stop_token_ids=_stop_token_ids(body, description.vocab_size),
        ignore_eos=bool(body.ignore_eos),
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        repetition_penalty=body.repetition_penalty or 1.0,
        logit_bias=logit_bias_of(body, description.vocab_size),
        bad_words_ids=bad_words_of(body, description.vocab_size),
        num_draft_tokens=body.speculative_config.num_speculative_tokens if body.speculative_config else 0,
    )


def _min_tokens(body: SharedFields, max_tokens: int | None) -> int:
    min_tokens = body.min_tokens or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise _invalid("min_tokens", f"'min_tokens' ({min_tokens}) is more than the output may have.")
    return min_tokens


def _stops(body: SharedFields) -> tuple[str, ...]:
    try:
        return checked_stops(body.stop)
    except PromptError as error:
        raise denied_prompt(error) from None


def _stop_token_ids(body: SharedFields, vocab_size: int) -> tuple[int, ...]:
    token_ids = tuple(body.stop_token_ids or ())
    check_token_ids(token_ids, vocab_size, "stop_token_ids")
    return token_ids


def denied_prompt(error: PromptError) -> Denied:
    return Denied(error.code, f"{error.message[:1].upper()}{error.message[1:]}.", param=error.param)


def _invalid(param: str, message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param=param)
