"""How a generation ends when it isn't the engine that says so."""

from inference_engine.contract.codes import Code
from tenants.errors import Denied


class GenerationFailed(Denied):
    """The events of a generation broke off."""


class EngineLost(GenerationFailed):
    """The engine died, fell silent or stood still; nothing that it sends later is read."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.ENGINE_LOST, "The engine that served this request was lost.", retry_after_s=1.0)
        self.reason = reason


class SlowReader(GenerationFailed):
    """The reader let its queue fill up, so the request was aborted rather than a token dropped."""

    def __init__(self, num_tokens: int) -> None:
        super().__init__(Code.SLOW_READER, f"More than {num_tokens} tokens were waiting to be read.")


class SessionFailed(Exception):
    """A session with an engine couldn't be opened."""
