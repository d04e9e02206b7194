"""Hard limits of the protocol, the same on both sides. Units are in the names."""

BLOCK_SIZE = 16
"""Tokens in one KV block. Shared by the scheduler, every attention backend and the usage figures."""

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Largest encoded frame either side accepts; a prompt of 1M token ids is about 5 MB."""

MAX_PLAIN_TOKENIZER_BYTES = MAX_FRAME_BYTES // 2
"""A larger tokenizer.json is packed before it travels."""
MAX_TOKENIZER_BYTES = 256 * 1024 * 1024
"""The largest that is unpacked: nine times that of a vocabulary of 262,144."""

MAX_PROMPT_TOKENS = 1_048_576
MAX_TOP_LOGPROBS = 20
MAX_STOP_TOKEN_IDS = 128
MAX_BIASED_TOKENS = 1024
MAX_BAD_WORDS = 256
MAX_BAD_WORD_TOKENS = 64
MAX_REPETITION_PENALTY = 10_000.0
MAX_DRAFT_TOKENS = 32
MAX_TOKENS_PER_DELTA = 64
MAX_ID_LENGTH = 128
"""Characters in a request, tenant, key or group id."""

FRAME_INTERVAL_S = 0.25
"""The engine sends some frame at least this often on every session."""

SILENCE_LIMIT_S = 1.0
"""A session without a frame, or a step counter that stands still while work waits, so long: a lost engine."""

HEARTBEAT_INTERVAL_S = 0.5
RECORD_TTL_S = 3.0
"""Lifetime of a registry record in Redis; an engine renews it every HEARTBEAT_INTERVAL_S."""
