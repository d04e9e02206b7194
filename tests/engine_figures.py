"""What an engine process says of itself, at this moment, on its metrics port."""

import urllib.request
from http.client import HTTPException

from inference_engine.contract.events import Stats

PREFIX = "octavo_engine_"


def engine_figures(port: int) -> Stats | None:
    """None: nobody answers there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except (OSError, HTTPException):
        return None
    values = dict(line.split(" ") for line in lines if line.startswith(PREFIX) and "{" not in line)
    names = {field: PREFIX + field.removeprefix("num_") for field in Stats.__struct_fields__}
    return Stats(**{field: _whole(values, name) for field, name in names.items()})


def _whole(values: dict[str, str], name: str) -> int:
    return int(float(values[name] if name in values else values[f"{name}_total"]))
