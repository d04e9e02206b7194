"""Targets by service class as a setting: `interactive=50,standard=200`, in milliseconds."""

from inference_engine.contract.requests import ServiceClass


def read_targets(text: str) -> dict[ServiceClass, float]:
    """Seconds by class. Raises ValueError."""
    targets: dict[ServiceClass, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        try:
            service_class, milliseconds = ServiceClass(name.strip()), float(value)
        except ValueError as error:
            raise ValueError(f"{part!r} is not a class and its milliseconds, as interactive=50") from error
        if not 0 < milliseconds < float("inf"):
            raise ValueError(f"{part!r}: a target is more than 0 milliseconds")
        if service_class in targets:
            raise ValueError(f"{service_class.value} has two targets")
        targets[service_class] = milliseconds / 1000
    return targets
