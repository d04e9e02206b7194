"""What one turn of the loop has to say, sorted by session: one batch, so one frame, a session and turn."""

from dataclasses import dataclass, field

from inference_engine.contract.events import EngineMessage

from .outbox import Batch, Outbox

OBSERVERS_BACKLOG = 16
"""Frames that may wait for an observer before it misses steps."""


@dataclass(slots=True)
class SessionMail:
    outbox: Outbox
    observe_every: int = 0
    messages: list[EngineMessage] = field(default_factory=list)
    num_tokens: int = 0


class Mail:
    def __init__(self) -> None:
        self._sessions: dict[int, SessionMail] = {}
        self._pending: dict[int, SessionMail] = {}

    def open(self, outbox: Outbox) -> None:
        self._sessions[outbox.session_id] = SessionMail(outbox)

    def is_open(self, session_id: int) -> bool:
        return session_id in self._sessions

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)
        self._pending.pop(session_id, None)

    def post(self, session_id: int, message: EngineMessage, num_tokens: int = 0) -> None:
        """Mail for a session that has closed is dropped."""
        mail = self._sessions.get(session_id)
        if mail is None:
            return
        mail.messages.append(message)
        mail.num_tokens += num_tokens
        self._pending[session_id] = mail

    def observe(self, session_id: int, every: int) -> None:
        if session_id in self._sessions:
            self._sessions[session_id].observe_every = every

    def observers(self, step: int) -> list[int]:
        """Sessions that want this step. One that lags misses steps rather than growing its outbox."""
        return [
            session_id
            for session_id, mail in self._sessions.items()
            if mail.observe_every and step % mail.observe_every == 0 and len(mail.outbox) < OBSERVERS_BACKLOG
        ]

    def send(self, step: int, has_work: bool) -> list[Outbox]:
        """Put what was posted into the outboxes; returns those that got something."""
        outboxes = []
        for mail in self._pending.values():
            mail.outbox.put(Batch(mail.messages, mail.num_tokens, step, has_work))
            outboxes.append(mail.outbox)
            mail.messages, mail.num_tokens = [], 0
        self._pending.clear()
        return outboxes
