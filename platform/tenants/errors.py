"""The one error of the whole platform: why something was not admitted or could not be done."""

from collections.abc import Mapping

from inference_engine.contract.codes import Code


class Denied(Exception):
    """A refusal that a client may see: no secret in `message`. gateway/errors.py maps `code` to a status.

    `retry_after_s` is when the same request can succeed; `headers` go out with the answer (x-ratelimit-...).
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s
        self.headers: dict[str, str] = dict(headers or {})


def store_unavailable() -> Denied:
    """Redis or the database can't be asked: nothing is admitted."""
    return Denied(Code.STORE_UNAVAILABLE, "The service can't admit requests right now.", retry_after_s=1.0)
