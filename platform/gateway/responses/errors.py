"""What goes wrong in a stream of response events, where no response can say it."""

from gateway.errors import OpenAIErrors
from gateway.runs.chunks import encode
from gateway.runs.event_answer import Event
from tenants.errors import Denied


class ResponseErrors(OpenAIErrors):
    def event(self, denied: Denied, request_id: str) -> bytes:
        fields = {"code": denied.code.value, "message": denied.message, "param": denied.param}
        return Event("error", encode({"type": "error", **fields})).sse()


RESPONSE_ERRORS = ResponseErrors()
