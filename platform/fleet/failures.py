"""How a generation ends when it isn't the engine that says so."""

from inference_engine.contract.codes import Code


class GenerationFailed(Exception):
    """The stream of events broke off. `code` is what the client is told."""

    code: Code = Code.INTERNAL_ERROR


class EngineLost(GenerationFailed):
    """The engine died, fell silent or stood still; nothing that it sends later is read."""

    code = Code.ENGINE_LOST


class SlowReader(GenerationFailed):
    """The reader let its queue fill up, so the request was aborted rather than a token dropped."""

    code = Code.SLOW_READER


class SessionFailed(Exception):
    """A session with an engine couldn't be opened."""
