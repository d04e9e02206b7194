"""Every operation of the hot path. A new endpoint's folder declares its own, and is named here."""

from gateway.chat.operation import OPERATIONS as CHAT
from gateway.completions.operation import OPERATIONS as COMPLETIONS
from gateway.embeddings.operation import OPERATIONS as EMBEDDINGS
from gateway.live.operation import OPERATIONS as LIVE
from gateway.messages.operation import OPERATIONS as MESSAGES
from gateway.responses.operation import OPERATIONS as RESPONSES
from gateway.tokens.operation import OPERATIONS as TOKENS

from .operation import Operation
from .plain_operations import OPERATIONS as PLAIN

OPERATIONS: tuple[Operation, ...] = (
    *CHAT,
    *COMPLETIONS,
    *RESPONSES,
    *LIVE,
    *MESSAGES,
    *TOKENS,
    *EMBEDDINGS,
    *PLAIN,
)
