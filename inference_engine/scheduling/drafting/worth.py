"""When drafts of one request pay, and how many.

A draft that is verified costs a row of the step; one that is accepted saves a token's share of a later step.
Of n tokens in a step that takes a + b n, a share n b / (a + n b) of the time goes by rows: drafts pay while
more than that share of them is accepted. It is little where few requests run and nearly all where many do, so
the same text may be worth guessing alone and not in a crowd.

Where they stop paying they rest for some tokens, twice as many each time; then one draft is a trial. Their
number doubles while all are accepted, and falls to where the last ones failed.
"""

RATE = 0.2
"""Weight of the newest drafts in the share accepted."""
LEAST_ACCEPTANCE = 0.1
FIRST_COUNT = 4
FIRST_REST = 16
LONGEST_REST = 512


class DraftWorth:
    """Of one request. `num_known` is its number of known tokens, the clock here."""

    def __init__(self, max_drafts: int, lag: int) -> None:
        self._max = max_drafts
        self._least = min(max_drafts, 1 + 3 * lag)
        """With lag 1 a request that drafts leaves a step out: a single draft could never make up for it."""
        self._lag = lag
        self._count = min(max_drafts, FIRST_COUNT)
        self._acceptance = 1.0
        self._rest = FIRST_REST
        self._rests_until = 0

    def count(self, num_known: int, row_share: float) -> int:
        """How many to draft now, at most."""
        if num_known < self._rests_until:
            return 0
        wanted = max(row_share, LEAST_ACCEPTANCE, self._lag / self._count)
        if self._acceptance >= min(wanted, 1.0):
            return self._count
        self._rests_until = num_known + self._rest
        self._rest = min(2 * self._rest, LONGEST_REST)
        self._acceptance, self._count = min(wanted, 1.0), self._least
        return 0

    def learn(self, num_drafts: int, num_accepted: int) -> None:
        self._acceptance += RATE * (num_accepted / num_drafts - self._acceptance)
        if num_accepted == num_drafts:
            self._count = min(2 * self._count, self._max)
            self._rest = FIRST_REST
        else:
            self._count = max(num_accepted + 1, self._least)
