"""What an engine says of requests that nobody listens to any more."""

import asyncio
from collections.abc import Sequence

from fleet.failover import UnbrokenGeneration
from fleet.generation import Generation
from inference_engine.contract.events import Finished

LAST_WORD_S = 1.0


async def last_words(generations: Sequence[Generation | UnbrokenGeneration]) -> list[Finished | None]:
    """Of each, all of them over or aborted. None: it was refused, or its engine keeps silent."""
    words = [asyncio.ensure_future(generation.last_word()) for generation in generations]
    if not words:
        return []
    _, late = await asyncio.wait(words, timeout=LAST_WORD_S)
    for word in late:
        word.cancel()
    return [None if word in late else _finished(word.result()) for word in words]


def _finished(word: object) -> Finished | None:
    return word if isinstance(word, Finished) else None
