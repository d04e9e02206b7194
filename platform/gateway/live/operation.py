"""Tickets for sockets in the OpenAPI document."""

from gateway.live.ticket_endpoint import TicketBody
from gateway.openapi.operation import READING, Operation

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/realtime/tickets",
        summary="A ticket with which a browser opens a socket",
        body=TicketBody,
        needs_body=False,
        statuses=(400, 408, *READING),
    ),
)
