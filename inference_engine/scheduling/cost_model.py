"""How long a step will take: a linear model, fitted to the steps that were measured, by recursive least
squares.

    seconds = a + b x decode rows + c x prefill tokens + d x context tokens read by the decodes

Old steps are forgotten slowly (FORGETTING), so the model follows a machine that slows down; one step that
took absurdly long (a page fault, a neighbour) moves it no more than an ordinary bad one.
"""

from dataclasses import dataclass

FORGETTING = 0.998
MAX_UNCERTAINTY = 1e6
"""Of all coefficients together; beyond it nothing is forgotten, or steps that are all alike would blow it
up."""
NUM_STEPS_TO_TRUST = 32
NUM_PREFILL_STEPS_TO_TRUST = 8
OUTLIER = 4.0
"""Times the mean error."""

_SCALES = (1.0, 16.0, 128.0, 8192.0)
"""Units of the four features, so that their coefficients are of one size."""

Vector = list[float]


@dataclass(frozen=True, slots=True)
class StepShape:
    num_decodes: int
    num_prefill_tokens: int
    num_context_tokens: int
    """Of the decodes, all together."""


class StepCostModel:
    def __init__(self) -> None:
        size = len(_SCALES)
        self.num_observed = 0
        self.num_with_prefill = 0
        self._weights: Vector = [0.0] * size
        self._covariance: list[Vector] = [[1e3 * (i == j) for j in range(size)] for i in range(size)]
        self._mean_error = 0.0

    @property
    def is_trusted(self) -> bool:
        return self.num_observed >= NUM_STEPS_TO_TRUST

    @property
    def is_trusted_on_prefill(self) -> bool:
        """Decodes alone, however many, say nothing of what a prompt token costs."""
        return self.is_trusted and self.num_with_prefill >= NUM_PREFILL_STEPS_TO_TRUST

    @property
    def seconds_per_prefill_token(self) -> float:
        return max(1e-9, self._weights[2] / _SCALES[2])

    def observe(self, shape: StepShape, seconds: float) -> None:
        features = _features(shape)
        gain = self._gain(features)
        error = self._bounded(seconds - _dot(self._weights, features))
        self._weights = [weight + g * error for weight, g in zip(self._weights, gain, strict=True)]
        self.num_observed += 1
        self.num_with_prefill += shape.num_prefill_tokens > 0

    def predict(self, shape: StepShape) -> float:
        """Seconds."""
        return max(0.0, _dot(self._weights, _features(shape)))

    def max_prefill_tokens(self, num_decodes: int, num_context_tokens: int, seconds: float) -> int:
        """The most prefill tokens beside these decodes with which the step takes at most `seconds`."""
        spare = seconds - self.predict(StepShape(num_decodes, 0, num_context_tokens))
        return max(0, int(spare / self.seconds_per_prefill_token))

    def row_share(self, num_decodes: int) -> float:
        """Between 0 and 1: how much of a step of so many decodes goes by rows, their contexts aside."""
        by_rows = num_decodes * max(0.0, self._weights[1]) / _SCALES[1]
        whole = max(0.0, self._weights[0]) + by_rows
        return by_rows / whole if whole else 0.0

    def _gain(self, features: Vector) -> Vector:
        """How far each weight follows an error of one second; takes the step into the covariance as well."""
        spread = [_dot(row, features) for row in self._covariance]
        uncertainty = sum(self._covariance[i][i] for i in range(len(features)))
        forgetting = FORGETTING if uncertainty < MAX_UNCERTAINTY else 1.0
        gain = [s / (forgetting + _dot(spread, features)) for s in spread]
        self._covariance = [
            [(value - g * s) / forgetting for value, s in zip(row, spread, strict=True)]
            for row, g in zip(self._covariance, gain, strict=True)
        ]
        return gain

    def _bounded(self, error: float) -> float:
        if self.is_trusted:
            limit = OUTLIER * self._mean_error
            error = min(max(error, -limit), limit)
        rate = max(0.02, 1 / (self.num_observed + 1))
        self._mean_error += rate * (abs(error) - self._mean_error) + 1e-7
        return error


def _features(shape: StepShape) -> Vector:
    counts = (1, shape.num_decodes, shape.num_prefill_tokens, shape.num_context_tokens)
    return [value / scale for value, scale in zip(counts, _SCALES, strict=True)]


def _dot(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
