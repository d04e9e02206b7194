"""Write tests/contract/golden/*.hex anew from tests/stand_ins/golden_frames.py.

Run it, from the root of the clone, only when the contract changes on purpose:

    PYTHONPATH=.:tests python tests/contract/regenerate_golden.py

then read the difference: an old peer must still understand every frame that changed. The two frames from
other versions (`gateway_from_newer`, `engine_from_older`) are built by hand below, as such a peer would.
"""

from typing import Any

from msgspec import msgpack, to_builtins

from inference_engine.contract.registry import encode_record
from inference_engine.contract.wire import engine_frame, gateway_frame
from stand_ins.golden_frames import FROM_ENGINE, GOLDEN, RECORD, TO_ENGINE

LINE = 80


def from_newer_gateway() -> bytes:
    """Version 2, with fields unknown to version 1 in the frame, in a message and in a nested struct."""
    generate: dict[str, Any] = to_builtins(TO_ENGINE["generate"])
    generate["sampling"]["typical_p"] = 0.9
    generate["priority_hint"] = {"lane": 3}
    return msgpack.encode({"version": 2, "trace": "abc", "messages": [generate]})


def from_older_engine() -> bytes:
    """Without the optional fields: no attempt, no timeline, no cached tokens, no has_work."""
    finished = {
        "type": "finished",
        "request_id": "req-1",
        "reason": "length",
        "usage": {"prompt_tokens": 6, "output_tokens": 3},
    }
    return msgpack.encode({"version": 1, "step": 9, "messages": [finished]})


def main() -> None:
    frames = {f"gateway_{name}": gateway_frame(message) for name, message in TO_ENGINE.items()}
    for name, message in FROM_ENGINE.items():
        frames[f"engine_{name}"] = engine_frame([message], step=9, has_work=True)
    frames["gateway_from_newer"] = from_newer_gateway()
    frames["engine_from_older"] = from_older_engine()
    frames["replica_record"] = encode_record(RECORD)
    GOLDEN.mkdir(exist_ok=True)
    for name, data in frames.items():
        digits = data.hex()
        lines = [digits[i : i + LINE] for i in range(0, len(digits), LINE)]
        (GOLDEN / f"{name}.hex").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
