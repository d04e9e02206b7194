"""How the next token of one request is chosen."""

from typing import Annotated

from msgspec import Meta, Struct

from .limits import (
    MAX_BAD_WORD_TOKENS,
    MAX_BAD_WORDS,
    MAX_BIASED_TOKENS,
    MAX_DRAFT_TOKENS,
    MAX_REPETITION_PENALTY,
    MAX_STOP_TOKEN_IDS,
    MAX_TOP_LOGPROBS,
)

Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
TokenId = Annotated[int, Meta(ge=0)]
Penalty = Annotated[float, Meta(ge=-2.0, le=2.0)]
RepetitionPenalty = Annotated[float, Meta(gt=0.0, le=MAX_REPETITION_PENALTY)]
Bias = Annotated[float, Meta(ge=-100.0, le=100.0)]
BadWord = Annotated[tuple[TokenId, ...], Meta(min_length=1, max_length=MAX_BAD_WORD_TOKENS)]


class SamplingParams(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Sampling settings of one choice. The seed is mandatory: the gateway draws one if the client named none.

    The token at absolute position p (index in prompt + output) is a function of the logits and of
    Philox(seed, choice, p) alone, so a replayed, preempted or moved request goes on as if nothing had
    happened.
    """

    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    """Signed 64 bits, as clients send it; Philox reads the same bits as unsigned."""
    max_tokens: Annotated[int, Meta(ge=1)]
    """Output tokens, replayed ones included."""
    min_tokens: Annotated[int, Meta(ge=0)] = 0
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    """0 is greedy: the highest logit, the lowest id among equals."""
    top_p: Probability = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    """0 keeps every token."""
    min_p: Probability = 0.0
    stop_token_ids: Annotated[tuple[TokenId, ...], Meta(max_length=MAX_STOP_TOKEN_IDS)] = ()
    ignore_eos: bool = False
    """Model end ids do not stop the request; the request's own stop_token_ids still do."""
    logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    """None: no logprobs; 0: the chosen token's only; n: the n most likely as well."""
    prompt_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    """The same of the prompt's tokens but the first. The whole prompt is then computed: no cache is used."""
    presence_penalty: Penalty = 0.0
    """Taken from the logit of every token that is among the outputs."""
    frequency_penalty: Penalty = 0.0
    """Taken from it once for each time it is there."""
    repetition_penalty: RepetitionPenalty = 1.0
    """Logits of tokens in prompt or outputs: the positive are divided by it, the others multiplied."""
    logit_bias: Annotated[dict[TokenId, Bias], Meta(max_length=MAX_BIASED_TOKENS)] = {}
    """Added after the penalties."""
    bad_words_ids: Annotated[tuple[BadWord, ...], Meta(max_length=MAX_BAD_WORDS)] = ()
    """Sequences that the end of prompt + outputs never becomes by an output token."""
    num_draft_tokens: Annotated[int, Meta(ge=0, le=MAX_DRAFT_TOKENS)] = 0
    """Up to so many tokens a step are guessed by prompt lookup and verified together: speed alone, never
    other tokens. The engine has a limit of its own, and stops guessing where that doesn't pay. 0: never."""
