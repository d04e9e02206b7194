"""A model directory with a real tokenizer and no real weights, for engines that run the fake."""

import json
import struct
from pathlib import Path

from stand_ins.tiny_text import CHATML, CHATML_TOKENS, byte_level_tokenizer

CONTEXT_LENGTH = 512
VOCAB_SIZE = 263
END_ID = 262
"""<|im_end|>: 256 bytes, four merges, then three added tokens."""


def tiny_model_dir(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = {"vocab_size": VOCAB_SIZE, "max_position_embeddings": CONTEXT_LENGTH, "eos_token_id": END_ID}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes(byte_level_tokenizer())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": CHATML_TOKENS[-1], "chat_template": CHATML})
    )
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    return folder
