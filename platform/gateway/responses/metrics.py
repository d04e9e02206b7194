"""What becomes of stored responses."""

from prometheus_client import Counter

NOT_KEPT = Counter(
    "octavo_responses_not_kept_total", "Responses that were to be stored and that the database did not take."
)
