"""The real engine on the Triton backend: launched steps, recorded decodes, prefills beside them."""

from pathlib import Path

import pytest
import torch

from inference_engine.execution.attention.reference import ReferenceBackend
from inference_engine.execution.attention.triton import TritonBackend
from inference_engine.execution.device.device_runner import DeviceRunner
from inference_engine.execution.model_runner import ModelRunner, RunnerLimits
from inference_engine.execution.models.model_loading import load_model
from launched_steps import Order, generate
from tiny_families import save_tiny

LIMITS = RunnerLimits(max_running=4, max_step_tokens=24)
ORDERS: list[Order] = [
    (range(30), {"max_tokens": 6}),
    (range(5, 8), {"max_tokens": 6}),
    (range(9, 20), {"max_tokens": 4}),
]


@pytest.mark.parametrize("family", ["Gemma 2", "gpt-oss"])
def test_launched_steps_give_the_reference_s_tokens(family: str, tmp_path: Path) -> None:
    folder = save_tiny(family, tmp_path, num_hidden_layers=2, layer_types=None)
    reference = ReferenceBackend()
    plain = ModelRunner(load_model(folder, torch.float32, reference), reference, LIMITS, num_blocks=20)
    runner = DeviceRunner.load(
        folder,
        device="cpu",
        backend="triton",
        split_kv=family == "Gemma 2",
        dtype="float32",
        num_blocks=20,
        max_running=LIMITS.max_running,
        max_step_tokens=LIMITS.max_step_tokens,
    )
    assert isinstance(runner.backend, TritonBackend)
    if family == "Gemma 2":
        with torch.inference_mode():
            runner.record_decodes()
    expected = generate(plain, ORDERS, lag=0)
    assert generate(runner, ORDERS, lag=1) == expected
    assert [len(tokens) for tokens in expected] == [6, 6, 4]
