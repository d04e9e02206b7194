"""What the hot path needs while it runs: the engines and the models' texts."""

from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from fleet.channels import TlsFiles
from fleet.fleet import POLL_INTERVAL_S, Fleet
from fleet.session import SessionOptions
from fleet.tenant_shares import TenantShares
from gateway.live.watch import SocketWatch
from gateway.responses.cancelling import CancelCalls
from gateway.responses.keeping import ResponseStore
from gateway.responses.running import RunningResponses
from gateway.runs.model_texts import ModelTexts
from inference_engine.contract.events import Description
from quotas.store import async_redis


class Services:
    """Belongs to one event loop; made at start-up."""

    def __init__(self, *, poll_interval_s: float = POLL_INTERVAL_S) -> None:
        """`poll_interval_s`: how often Redis is asked for engines and changed policies."""
        self.texts = ModelTexts()
        self.fleet = Fleet(
            async_redis(),
            on_description=self.texts.prepare,
            poll_interval_s=poll_interval_s,
            session_options=SessionOptions(tls=tls_files()),
        )
        self.tenant_shares = TenantShares(async_redis(), self.fleet.sessions, poll_interval_s=poll_interval_s)
        self.responses = ResponseStore()
        self.running = RunningResponses()
        self.cancel_calls = CancelCalls(self.running)
        self.sockets = SocketWatch()

    async def start(self) -> None:
        await self.fleet.start()
        self.tenant_shares.start()
        self.cancel_calls.start()

    async def stop(self) -> None:
        await self.sockets.stop()
        await self.cancel_calls.stop()
        await self.responses.stop()
        await self.tenant_shares.stop()
        await self.fleet.stop()

    def ready_models(self) -> dict[str, Description]:
        """Models that an engine is ready for and whose text is ready here."""
        return {name: found for name, found in self.fleet.models().items() if self.texts.has(found)}


def tls_files() -> TlsFiles | None:
    """For engines on other machines: all three files or none."""
    cert, key, authorities = settings.OCTAVO_TLS_CERT, settings.OCTAVO_TLS_KEY, settings.OCTAVO_TLS_CA
    if not (cert or key or authorities):
        return None
    if not (cert and key and authorities):
        raise ImproperlyConfigured("OCTAVO_TLS_CERT, OCTAVO_TLS_KEY and OCTAVO_TLS_CA go together")
    return TlsFiles(Path(cert), Path(key), Path(authorities))
