"""Which engine takes a request. Pure."""

from collections.abc import Iterable

from fleet.session import EngineSession


def least_loaded(sessions: Iterable[EngineSession]) -> EngineSession | None:
    """The one with the fewest requests waiting or running; among equals the one routed to longest ago."""
    return min(sessions, key=lambda session: (session.load, session.routed_at), default=None)
