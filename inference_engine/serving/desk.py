"""Between sessions and the scheduler: takes what gateways ask, posts what became of it. Loop thread only."""

from collections.abc import Callable

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Delta, Finished, Refused
from inference_engine.contract.requests import Abort, Generate
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import RequestUpdate, StepPlan

from .live_requests import LiveRequest, LiveRequests
from .mail import Mail
from .orphans import OrphanUsage


class Desk:
    def __init__(self, scheduler: Scheduler, mail: Mail, clock: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._mail = mail
        self._clock = clock
        self.live = LiveRequests()
        self.num_refused = 0
        self.is_draining = False

    def generate(self, session_id: int, generate: Generate, received_at: float) -> None:
        """Accept or refuse. A newer attempt of a live request replaces it; of the old one no more is said."""
        code = self._refusal(generate)
        if code is not None:
            return self.refuse(
                session_id, Refused(request_id=generate.request_id, attempt=generate.attempt, code=code)
            )
        older = self.live.get(generate.request_id)
        if older is not None:
            self._remove(older, Code.DUPLICATE_REQUEST)
        answer = self._scheduler.add(generate)
        request = self._scheduler.requests.get(generate.request_id)
        if request is not None:
            live = LiveRequest(request, session_id, generate.reservation_key, received_at)
            self.live.add(live, generate)
        self._mail.post(session_id, answer)

    def _refusal(self, generate: Generate) -> Code | None:
        if self.is_draining:
            return Code.DRAINING
        older = self.live.get(generate.request_id)
        is_old = older is not None and older.request.attempt >= generate.attempt
        if is_old or self.live.has_ended(generate.request_id, generate.attempt):
            return Code.DUPLICATE_REQUEST
        return None

    def refuse(self, session_id: int, refused: Refused) -> None:
        self.num_refused += 1
        self._mail.post(session_id, refused)

    def abort(self, session_id: int, abort: Abort) -> None:
        """Only what this session asked for; an attempt that has ended or was replaced is nothing to abort."""
        live = self.live.find(abort.request_id, abort.attempt)
        if live is not None and live.session_id == session_id:
            self._end(live, FinishReason.ABORTED, Code.CLIENT_GONE)

    def expire(self) -> None:
        for live in self.live.pop_expired(self._clock()):
            self._end(live, FinishReason.ABORTED, Code.DEADLINE_EXCEEDED)

    def close_session(self, session_id: int) -> list[OrphanUsage]:
        """Abort all that came over the session; returns the final usage that nobody is left to hear."""
        orphans = []
        for live in self.live.of_session(session_id):
            self._remove(live, Code.CLIENT_GONE)
            if live.reservation_key:
                orphans.append(OrphanUsage(live.reservation_key, live.request.attempt, live.usage()))
        self._mail.close(session_id)
        return orphans

    def fail_slow_reader(self, session_id: int) -> None:
        for live in self.live.of_session(session_id):
            self._end(live, FinishReason.FAILED, Code.SLOW_READER)

    def note_started(self, plan: StepPlan) -> None:
        now = self._clock()
        for chunk in plan.chunks:
            if chunk.request.num_chunks <= 1:
                live = self.live.find(chunk.request.request_id, chunk.request.attempt)
                if live is not None and live.started_at is None:
                    live.started_at = now

    def deliver(self, updates: list[RequestUpdate]) -> None:
        now = self._clock()
        for update in updates:
            live = self.live.find(update.request.request_id, update.request.attempt)
            if live is None:
                continue
            if update.token_ids:
                live.first_token_at = now if live.first_token_at is None else live.first_token_at
                self._post_delta(live, update)
            if update.finish is not None:
                self.live.remove(live)
                self._post_finished(live, update.finish, update.code, update.stop_token_id)

    def _post_delta(self, live: LiveRequest, update: RequestUpdate) -> None:
        request_id, attempt = live.key
        delta = Delta(
            request_id=request_id, attempt=attempt, token_ids=update.token_ids, logprobs=update.logprobs
        )
        self._mail.post(live.session_id, delta, len(update.token_ids))

    def _end(self, live: LiveRequest, reason: FinishReason, code: Code) -> None:
        self._remove(live, code)
        self._post_finished(live, reason, code)

    def _remove(self, live: LiveRequest, code: Code) -> None:
        request_id, attempt = live.key
        self._scheduler.abort(request_id, attempt, code)
        self.live.remove(live)

    def _post_finished(
        self, live: LiveRequest, reason: FinishReason, code: Code | None, stop_token_id: int | None = None
    ) -> None:
        request_id, attempt = live.key
        finished = Finished(
            request_id=request_id,
            attempt=attempt,
            reason=reason,
            code=code,
            stop_token_id=stop_token_id,
            usage=live.usage(),
            timeline=live.timeline(self._clock()),
        )
        self._mail.post(live.session_id, finished)
