"""What a folder says of a model made for embeddings: the layout of sentence-transformers. Imports no torch.

    modules.json                    Transformer, Pooling and perhaps Normalize, in this order
    1_Pooling/config.json           how the hidden states of a text become one vector
    sentence_bert_config.json       the longest text
    config_sentence_transformers.json   instructions that may stand before a text: the client's to write

What would change vectors and isn't served is refused by name: nobody notices wrong vectors.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from .model_json import ModelFilesError, read_bytes, read_json, read_optional_json

MODULES = "modules.json"
SERVED = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_MODE = "pooling_mode_"


class Pooling(StrEnum):
    LAST_TOKEN = "lasttoken"  # noqa: S105
    MEAN = "mean_tokens"


@dataclass(frozen=True, slots=True)
class EmbeddingFiles:
    pooling: Pooling
    is_normalized: bool
    max_tokens: int | None
    """Of a text, where the model was made for fewer than its positions."""


def load_embedding_files(directory: Path) -> EmbeddingFiles | None:
    """None: the model generates text. Raises ModelFilesError for a layout that isn't served."""
    if not (directory / MODULES).exists():
        return None
    modules = _modules(directory)
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    if kinds not in SERVED:
        raise ModelFilesError(f"{MODULES}: {', '.join(kinds)} are not served, only {', '.join(SERVED[1])}")
    if modules[0].get("path"):
        raise ModelFilesError(f"{MODULES}: the Transformer must be in the folder itself")
    _check_prompts(directory)
    _check_end_token(directory)
    pooling = _pooling(read_json(directory / str(modules[1].get("path")) / "config.json"))
    return EmbeddingFiles(pooling, kinds[-1] == "Normalize", _max_tokens(directory))


def _modules(directory: Path) -> list[dict[str, Any]]:
    try:
        listed = json.loads(read_bytes(directory / MODULES))
    except (ValueError, RecursionError) as error:
        raise ModelFilesError(f"{MODULES} is not JSON: {error}") from error
    if not isinstance(listed, list) or not all(isinstance(module, dict) for module in listed):
        raise ModelFilesError(f"{MODULES} is not a list of modules")
    return listed


def _pooling(config: dict[str, Any]) -> Pooling:
    """Older files have a flag for each mode, newer ones a name."""
    modes = [
        name.removeprefix(_MODE) for name, value in config.items() if name.startswith(_MODE) and value is True
    ]
    if isinstance(named := config.get("pooling_mode"), str):
        modes = ["mean_tokens" if named == "mean" else named]
    if len(modes) != 1 or modes[0] not in list(Pooling):
        served = " or ".join(Pooling)
        raise ModelFilesError(f"pooling by {', '.join(modes) or 'nothing'} is not served, only {served}")
    return Pooling(modes[0])


def _max_tokens(directory: Path) -> int | None:
    config = read_optional_json(directory / "sentence_bert_config.json")
    if config.get("do_lower_case"):
        raise ModelFilesError("sentence_bert_config.json: do_lower_case is not served")
    most = config.get("max_seq_length")
    return most if isinstance(most, int) and most > 0 else None


def _check_prompts(directory: Path) -> None:
    """Prompts are chosen by name where they are used; one that stands before every text would be missed."""
    config = read_optional_json(directory / "config_sentence_transformers.json")
    name, prompts = config.get("default_prompt_name"), config.get("prompts")
    if name is not None and isinstance(prompts, dict) and prompts.get(name):
        raise ModelFilesError(
            f"config_sentence_transformers.json: the default prompt {name!r} is not served; without a "
            "default clients write the prompt they want before their text"
        )


def _check_end_token(directory: Path) -> None:
    """Texts are tokenised as tokenizer.json alone says."""
    tokenizer_config = read_optional_json(directory / "tokenizer_config.json")
    end = tokenizer_config.get("eos_token")
    content = end.get("content") if isinstance(end, dict) else end
    post_processor = read_optional_json(directory / "tokenizer.json").get("post_processor")
    if tokenizer_config.get("add_eos_token") and str(content) not in str(post_processor):
        raise ModelFilesError(
            f"tokenizer_config.json wants {content!r} behind each text, which tokenizer.json doesn't add"
        )
