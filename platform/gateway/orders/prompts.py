"""A completion's `prompt` or an embedding's `input` as token ids: one text, one list of ids, or a list of
either."""

import asyncio

from gateway.orders.logit_settings import check_token_ids
from gateway.orders.order import denied_prompt
from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from text.errors import PromptError
from text.model_text import ModelText

MAX_PROMPTS = 128

RawPrompt = str | list[str | int | list[int]]


async def encode_prompts(
    prompt: RawPrompt,
    text: ModelText,
    description: Description,
    *,
    param: str = "prompt",
    most: int = MAX_PROMPTS,
) -> list[list[int]]:
    """One list of ids for each prompt, at most so many. Raises Denied, which names the field `param`."""
    encoded: list[list[int]] = []
    try:
        for one in split_prompts(prompt, most):
            if encoded:
                await asyncio.sleep(0)  # short texts are read here: others get their turn between two
            encoded.append(await _encode(one, text, description))
    except Denied as denied:
        denied.param = param
        raise
    return encoded


def echoes_of(prompt: RawPrompt, encoded: list[list[int]], text: ModelText) -> list[str]:
    """The text of each prompt: as it was given, or as its ids read."""
    given = split_prompts(prompt)
    return [
        one if isinstance(one, str) else text.decode(ids) for one, ids in zip(given, encoded, strict=True)
    ]


def split_prompts(prompt: RawPrompt, most: int = MAX_PROMPTS) -> list[str | list[int]]:
    """Raises Denied for an empty prompt, for too many and for a list of mixed kinds."""
    if isinstance(prompt, str):
        prompts: list[str | list[int]] = [prompt]
    elif prompt and all(type(item) is int for item in prompt):
        prompts = [prompt]  # type: ignore[list-item]
    else:
        prompts = _of_one_kind(prompt)
    if not prompts or not all(prompts):
        raise _invalid("The prompt must not be empty.")
    if len(prompts) > most:
        raise _invalid(f"At most {most} prompts are accepted in one request.")
    return prompts


def _of_one_kind(prompt: list[str | int | list[int]]) -> list[str | list[int]]:
    kinds = {type(item) for item in prompt}
    if len(kinds) > 1 or kinds & {int}:
        raise _invalid("The prompt must be a text, a list of token ids, or a list of either.")
    return prompt  # type: ignore[return-value]


async def _encode(prompt: str | list[int], text: ModelText, description: Description) -> list[int]:
    if isinstance(prompt, list):
        check_token_ids(prompt, description.vocab_size, "prompt")
        return prompt
    try:
        return await text.encode(prompt)
    except PromptError as error:
        raise denied_prompt(error) from None


def _invalid(message: str) -> Denied:
    return Denied(Code.INVALID_REQUEST, message, param="prompt")
