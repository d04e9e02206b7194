"""How large files and batches may be, the same for everybody."""

from datetime import timedelta

from gateway.limits import GENERATION_BODY_BYTES

MAX_FILE_BYTES = 200 * 1000 * 1000
"""200 MB."""
MULTIPART_BYTES = 1024 * 1024
"""What a form may add to its file."""
MAX_LINES = 50_000
MAX_LINE_BYTES = GENERATION_BODY_BYTES + 4096
"""The longest body that the endpoint itself would take, and its envelope."""
LINES_PER_CHUNK = 100
MAX_ERRORS = 100
"""Of one batch's input; who has more has a file of another kind."""
COMPLETION_WINDOWS = {"24h": timedelta(hours=24)}
ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses")
