"""Many WebSockets on one gateway process; `make bench-sockets` does the same with a thousand."""

from http_service import Service
from octavo_stack import Stack
from socket_load import load

MOST_KIB = 100.0


async def test_idle_sockets_cost_little_and_streams_run_beside_them(
    fake_service: Service, fake_stack: Stack
) -> None:
    """Each stream checks that its deltas are its whole text."""
    found = await load(fake_stack, num_sockets=250, num_streams=50, num_tokens=40)
    assert found["alive_at_the_end"] == 250
    assert found["tokens"] == 50 * 40
    assert found["kib_per_idle_socket"] < MOST_KIB
