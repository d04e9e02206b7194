"""Between sessions and the scheduler: takes what gateways ask, posts what became of it. Loop thread only."""

from collections.abc import Callable

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import Delta, Finished, Refused
from inference_engine.contract.requests import Abort, Generate
from inference_engine.scheduling.output_matcher import OutputMatcher
from inference_engine.scheduling.scheduler import Scheduler
from inference_engine.scheduling.step_plan import RequestUpdate, StepPlan

from .compilations import Compilation, Compilations
from .gathering import Gathering
from .live_requests import LiveRequest, LiveRequests
from .mail import Mail
from .orphans import OrphanUsage


class Desk:
    def __init__(
        self, scheduler: Scheduler, mail: Mail, compilations: Compilations, clock: Callable[[], float]
    ) -> None:
        self._scheduler = scheduler
        self._mail = mail
        self._clock = clock
        self.compilations = compilations
        self.live = LiveRequests()
        self.num_refused = 0
        self.is_draining = False

    def generate(self, session_id: int, generate: Generate, received_at: float) -> None:
        """Accept, refuse, or compile its constraint first. A newer attempt replaces an older one; of that no
        more is said."""
        code = self._refusal(generate)
        if code is not None:
            return self.refuse(
                session_id, Refused(request_id=generate.request_id, attempt=generate.attempt, code=code)
            )
        self._remove_older(generate.request_id)
        if generate.constraint is None or not self.compilations.are_served:
            return self._add(session_id, generate, received_at)
        refused = self._scheduler.refuse_early(generate)
        if refused is not None:
            return self._mail.post(session_id, refused)
        self.compilations.begin(session_id, generate, received_at)

    def compiled(self, compilation: Compilation) -> None:
        """Accept or refuse, unless nobody wants it any more."""
        if not self.compilations.take(compilation):
            return
        refused, session_id = compilation.refusal(), compilation.session_id
        if refused is not None:
            return self.refuse(session_id, refused)
        matcher = compilation.matcher.result()
        self._add(session_id, compilation.generate, compilation.received_at, matcher)

    def _add(
        self,
        session_id: int,
        generate: Generate,
        received_at: float,
        matcher: OutputMatcher | None = None,
    ) -> None:
        answer = self._scheduler.add(generate, matcher, self._clock() - received_at)
        request = self._scheduler.requests.get(generate.request_id)
        if request is not None:
            size = generate.tokens_per_delta
            gathering = Gathering(size) if size > 1 else None
            live = LiveRequest(request, session_id, generate.reservation_key, received_at, gathering)
            self.live.add(live, generate)
        self._mail.post(session_id, answer)

    def _refusal(self, generate: Generate) -> Code | None:
        if self.is_draining:
            return Code.DRAINING
        older, compilation = self.live.get(generate.request_id), self.compilations.get(generate.request_id)
        is_old = older is not None and older.request.attempt >= generate.attempt
        is_old |= compilation is not None and compilation.generate.attempt >= generate.attempt
        if is_old or self.live.has_ended(generate.request_id, generate.attempt):
            return Code.DUPLICATE_REQUEST
        return None

    def _remove_older(self, request_id: str) -> None:
        older, compilation = self.live.get(request_id), self.compilations.get(request_id)
        if older is not None:
            self._remove(older, Code.DUPLICATE_REQUEST)
        if compilation is not None:
            self.compilations.drop(compilation)

    def refuse(self, session_id: int, refused: Refused) -> None:
        self.num_refused += 1
        self._mail.post(session_id, refused)

    def abort(self, session_id: int, abort: Abort) -> None:
        """Only what this session asked for; an attempt that has ended or was replaced is nothing to abort."""
        live = self.live.find(abort.request_id, abort.attempt)
        if live is not None and live.session_id == session_id:
            self._end(live, FinishReason.ABORTED, Code.CLIENT_GONE)
        compilation = self.compilations.get(abort.request_id)
        if compilation is not None and compilation.is_of(session_id, abort.attempt):
            self._give_up(compilation, Code.CLIENT_GONE)

    def expire(self) -> None:
        now = self._clock()
        for live in self.live.pop_expired(now):
            self._end(live, FinishReason.ABORTED, Code.DEADLINE_EXCEEDED)
        for compilation in self.compilations.expired(now):
            self._give_up(compilation, Code.DEADLINE_EXCEEDED)

    def idle_seconds(self) -> float | None:
        """How long the loop may sleep although nothing is asked of it; None: as long as it likes."""
        deadline = self.compilations.next_deadline()
        return None if deadline is None else max(0.0, deadline - self._clock())

    def _give_up(self, compilation: Compilation, code: Code) -> None:
        """Before it was accepted, so it ends as refused."""
        self.compilations.drop(compilation)
        self.refuse(compilation.session_id, compilation.refused(code))

    def close_session(self, session_id: int) -> list[OrphanUsage]:
        """Abort all that came over the session; returns the final usage that nobody is left to hear."""
        unheard = self.live.ended_lately(session_id, self._clock())
        for live in self.live.of_session(session_id):
            self._remove(live, Code.CLIENT_GONE)
            if live.reservation_key:
                unheard.append(live.orphan())
        for compilation in self.compilations.of_session(session_id):
            self.compilations.drop(compilation)
        self._mail.close(session_id)
        return unheard

    def fail_slow_reader(self, session_id: int) -> None:
        for live in self.live.of_session(session_id):
            self._end(live, FinishReason.FAILED, Code.SLOW_READER)
        for compilation in self.compilations.of_session(session_id):
            self._give_up(compilation, Code.SLOW_READER)

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
            if update.token_ids or update.prompt_logprobs is not None:
                live.first_token_at = now if live.first_token_at is None else live.first_token_at
            due = update if live.gathering is None else live.gathering.add(update)
            if due is not None and (due.token_ids or due.prompt_logprobs is not None):
                self._post_delta(live, due)
            if update.finish is not None:
                self.live.remove(live)
                self._post_finished(
                    live, update.finish, update.code, update.stop_token_id, vector=update.vector
                )

    def _post_delta(self, live: LiveRequest, update: RequestUpdate) -> None:
        request_id, attempt = live.key
        delta = Delta(
            request_id=request_id,
            attempt=attempt,
            token_ids=update.token_ids,
            logprobs=update.logprobs,
            prompt_logprobs=update.prompt_logprobs,
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
        self,
        live: LiveRequest,
        reason: FinishReason,
        code: Code | None,
        stop_token_id: int | None = None,
        *,
        vector: bytes = b"",
    ) -> None:
        (request_id, attempt), now = live.key, self._clock()
        finished = Finished(
            request_id=request_id,
            attempt=attempt,
            reason=reason,
            code=code,
            stop_token_id=stop_token_id,
            usage=live.usage(),
            timeline=live.timeline(now),
            vector=vector,
        )
        self.live.note_end(live, now)
        self._mail.post(live.session_id, finished)
