"""One ModelText for each model served, built once, in a thread."""

import asyncio
import gc

import structlog

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from tenants.errors import Denied
from text.errors import ModelTextError
from text.model_text import ModelText

log = structlog.get_logger("gateway")


class ModelTexts:
    """Ready as soon as an engine describes itself, so that no request waits for a tokenizer to be read."""

    def __init__(self) -> None:
        self._building: dict[str, tuple[Description, asyncio.Task[ModelText]]] = {}

    def prepare(self, description: Description) -> None:
        """Start building unless it is the text already known for this model."""
        known = self._building.get(description.model)
        if known is None or not _is_same_text(known[0], description):
            task = asyncio.create_task(_build(description))
            task.add_done_callback(_log_failure)
            self._building[description.model] = (description, task)

    async def get(self, description: Description) -> ModelText:
        """Raises Denied where the model's text can't be served."""
        self.prepare(description)
        try:
            return await asyncio.shield(self._building[description.model][1])
        except ModelTextError:
            raise Denied(Code.NO_READY_REPLICA, f"The model '{description.model}' can't be served.") from None

    def has(self, description: Description) -> bool:
        known = self._building.get(description.model)
        return known is not None and known[1].done() and known[1].exception() is None


async def _build(description: Description) -> ModelText:
    text = await asyncio.to_thread(ModelText.from_description, description)
    spare_what_is_loaded()
    return text


def spare_what_is_loaded() -> None:
    """Modules and vocabularies stay to the end: looking through them all for garbage takes 80 ms, in
    which every stream stands still.
    """
    gc.collect()
    gc.freeze()


def _is_same_text(one: Description, other: Description) -> bool:
    return one is other or (
        one.tokenizer_hash == other.tokenizer_hash
        and one.chat_template == other.chat_template
        and one.tool_syntax == other.tool_syntax
        and one.template_tokens == other.template_tokens
        and one.special_ids == other.special_ids
        and one.context_length == other.context_length
        and one.vocab_size == other.vocab_size
    )


def _log_failure(task: "asyncio.Task[ModelText]") -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("model_text_unusable", error=str(error))
