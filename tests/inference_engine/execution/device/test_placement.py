import pytest
import torch

from inference_engine.execution.device.placement import CPU, find_device, free_memory, gpu_dtype
from inference_engine.execution.memory.kv_memory import allowed_memory


def test_the_cpu_is_always_here() -> None:
    assert find_device("cpu") == CPU
    assert free_memory(CPU) == allowed_memory()


@pytest.mark.parametrize("setting", ["mps", "gpu", "cpu:x", ""])
def test_other_words_are_refused(setting: str) -> None:
    with pytest.raises(ValueError, match="neither cpu nor cuda nor cuda:N"):
        find_device(setting)


def test_a_gpu_that_is_not_here_is_refused() -> None:
    with pytest.raises(ValueError, match=f"sees {torch.cuda.device_count()} GPUs"):
        find_device("cuda:99")


def test_a_gpu_computes_in_bf16_unless_told_otherwise() -> None:
    assert (gpu_dtype("auto"), gpu_dtype("float32")) == (torch.bfloat16, torch.float32)
    with pytest.raises(ValueError, match="no other is served on a GPU"):
        gpu_dtype("int8")
