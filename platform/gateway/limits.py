"""How much of a request is read, and for how long."""

GENERATION_BODY_BYTES = 8 * 1024 * 1024
READ_TIMEOUT_S = 30.0
"""For a whole body."""
