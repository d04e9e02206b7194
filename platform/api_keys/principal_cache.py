"""What this process knows about keys: principals of known ids, and for a moment which ids are unknown."""

from collections import OrderedDict
from dataclasses import dataclass

from api_keys.principal import Principal
from api_keys.secrets_format import KnownSecret

MAX_KNOWN = 50_000
MAX_UNKNOWN = 10_000


@dataclass(frozen=True, slots=True)
class CachedKey:
    secret: KnownSecret
    principal: Principal


class PrincipalCache:
    """Bounded; the least recently used goes first. Staleness is found by the policy epoch, not by age."""

    def __init__(self, max_known: int = MAX_KNOWN, max_unknown: int = MAX_UNKNOWN) -> None:
        self._known: OrderedDict[str, CachedKey] = OrderedDict()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._max_known, self._max_unknown = max_known, max_unknown
        self.generation = 0
        """Rises when everything is forgotten."""

    def get(self, public_id: str) -> CachedKey | None:
        cached = self._known.get(public_id)
        if cached is not None:
            self._known.move_to_end(public_id)
        return cached

    def put(self, public_id: str, cached: CachedKey) -> None:
        """A load that began before everything was forgotten is not kept."""
        if cached.principal.generation != self.generation:
            return
        self._known[public_id] = cached
        self._known.move_to_end(public_id)
        self._unknown.pop(public_id, None)
        if len(self._known) > self._max_known:
            self._known.popitem(last=False)

    def forget(self, public_id: str) -> None:
        self._known.pop(public_id, None)

    def forget_all(self) -> None:
        self.generation += 1
        self._known.clear()
        self._unknown.clear()

    def is_unknown(self, public_id: str, now: float) -> bool:
        until = self._unknown.get(public_id)
        if until is not None and until <= now:
            del self._unknown[public_id]
            return False
        return until is not None

    def put_unknown(self, public_id: str, until: float) -> None:
        self._unknown[public_id] = until
        self._unknown.move_to_end(public_id)
        if len(self._unknown) > self._max_unknown:
            self._unknown.popitem(last=False)
