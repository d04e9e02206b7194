"""Fields that are known but not served: each is accepted at the values that change nothing, else refused.

ACCEPTED lists those that are taken at any value although they change no output:
`user` and `metadata` go to the ledger; `prompt_cache_key` and `safety_identifier` are hints to OpenAI's own
routing, and `stream_options.include_obfuscation` asks for padding that is never sent here.
"""

from typing import Any

from msgspec import Struct
from msgspec.json import encode

from inference_engine.contract.codes import Code
from tenants.errors import Denied

ACCEPTED = frozenset(
    {"user", "metadata", "prompt_cache_key", "safety_identifier", "stream_options.include_obfuscation"}
)

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "suffix": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": ("none",),
    "verbosity": ("medium",),
    "web_search_options": (),
    "store": (False,),
}

NEUTRAL_IN_MESSAGE: dict[str, tuple[Any, ...]] = {
    "refusal": (),
    "annotations": ([],),
    "audio": (),
    "function_call": (),
}


def check_neutral(body: Struct, table: dict[str, tuple[Any, ...]], prefix: str = "") -> None:
    """Raises Denied: UNSUPPORTED_PARAMETER for the first field that would have to change the answer."""
    for name, neutral in table.items():
        value = getattr(body, name, None)
        if value is None or value in neutral:
            continue
        param = prefix + name
        allowed = " or ".join(encode(one).decode() for one in (*neutral, None))
        message = f"'{param}' is not supported by this server yet; it may only be {allowed}."
        raise Denied(Code.UNSUPPORTED_PARAMETER, message, param=param)
