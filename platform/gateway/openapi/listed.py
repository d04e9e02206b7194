"""Every operation of the hot path. A new endpoint's folder declares its own, and is named here."""

from gateway.chat.operation import OPERATIONS as CHAT
from gateway.completions.operation import OPERATIONS as COMPLETIONS
from gateway.live.operation import OPERATIONS as LIVE
from gateway.responses.operation import OPERATIONS as RESPONSES

from .operation import Operation
from .plain_operations import OPERATIONS as PLAIN

OPERATIONS: tuple[Operation, ...] = (*CHAT, *COMPLETIONS, *RESPONSES, *LIVE, *PLAIN)
