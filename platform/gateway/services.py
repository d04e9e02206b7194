"""What the hot path needs while it runs: the engines and the models' texts."""

from fleet.fleet import Fleet
from gateway.model_texts import ModelTexts
from inference_engine.contract.events import Description
from quotas.store import async_redis


class Services:
    """Belongs to one event loop; made at start-up."""

    def __init__(self) -> None:
        self.texts = ModelTexts()
        self.fleet = Fleet(async_redis(), on_description=self.texts.prepare)

    async def start(self) -> None:
        await self.fleet.start()

    async def stop(self) -> None:
        await self.fleet.stop()

    def ready_models(self) -> dict[str, Description]:
        """Models that an engine is ready for and whose text is ready here."""
        return {name: found for name, found in self.fleet.models().items() if self.texts.has(found)}
