"""Sequences that must not appear: the last id of one is forbidden wherever the others have just come."""

from collections.abc import Sequence

from inference_engine.scheduling.request import Request

NO_IDS: frozenset[int] = frozenset()


def forbidden_ends(request: Request, start: int, ids: Sequence[int]) -> frozenset[int]:
    """Ids that would complete a bad word behind `ids`, tokens of the request from position `start` on."""
    words = request.sampling.bad_words_ids
    if not words:
        return NO_IDS
    tail = _tail(request, start, ids, max(map(len, words)) - 1)
    return frozenset(word[-1] for word in words if ends_with(tail, word[:-1]))


def ends_with(ids: tuple[int, ...], end: tuple[int, ...]) -> bool:
    return len(end) <= len(ids) and ids[len(ids) - len(end) :] == end


def _tail(request: Request, start: int, ids: Sequence[int], length: int) -> tuple[int, ...]:
    """The last ids of prompt + outputs up to the end of `ids`; `length` of them where there are as many."""
    if not length:
        return ()
    before = request.ids_between(max(0, start + len(ids) - length), start)
    return (*before, *ids[-length:])
