"""What the sockets do."""

from prometheus_client import Counter, Gauge

OPEN_SOCKETS = Gauge("octavo_sockets_open", "WebSockets that are open now.")
REFUSED_SOCKETS = Counter("octavo_sockets_refused_total", "WebSockets that were not opened.", ["code"])
