"""Output tokens of one request that wait to be sent together."""

from msgspec import structs

from inference_engine.contract.events import TokenLogprobs
from inference_engine.scheduling.step_plan import RequestUpdate


class Gathering:
    def __init__(self, size: int) -> None:
        self._size = size
        self._num_due = 1
        self._token_ids: list[int] = []
        self._logprobs: list[TokenLogprobs] = []

    def add(self, update: RequestUpdate) -> RequestUpdate | None:
        """What to send now: this update with all that waited for it, or nothing yet. The first one, and one
        that ends the request, are sent at once."""
        self._token_ids += update.token_ids
        self._logprobs += update.logprobs or []
        is_special = update.finish is not None or update.prompt_logprobs is not None
        if len(self._token_ids) < self._num_due and not is_special:
            return None
        whole = structs.replace(update, token_ids=self._token_ids, logprobs=self._logprobs or None)
        self._token_ids, self._logprobs, self._num_due = [], [], self._size
        return whole
