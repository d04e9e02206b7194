"""Sequences that must not appear: the last id of one is forbidden wherever the others have just come."""

from inference_engine.scheduling.step_plan import ScheduledChunk

NO_IDS: frozenset[int] = frozenset()


def forbidden_ends(chunk: ScheduledChunk, last_id: int) -> frozenset[int]:
    """Ids that would complete a bad word behind this chunk, whose last token is `last_id`."""
    words = chunk.request.sampling.bad_words_ids
    if not words:
        return NO_IDS
    tail = _tail(chunk, last_id, max(map(len, words)) - 1)
    return frozenset(word[-1] for word in words if ends_with(tail, word[:-1]))


def ends_with(ids: tuple[int, ...], end: tuple[int, ...]) -> bool:
    return len(end) <= len(ids) and ids[len(ids) - len(end) :] == end


def _tail(chunk: ScheduledChunk, last_id: int, length: int) -> tuple[int, ...]:
    """The last ids of prompt + outputs up to this chunk's end; `length` of them where there are as many."""
    end = chunk.start + len(chunk.token_ids)
    known = chunk.request.ids_between(max(0, end - length), end - 1)
    return (*known, last_id) if length else ()
