"""How much is checked: in full on a GPU, in miniature on the CPU."""

import traceback
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.gpu.clock import flops_per_s, read_bytes_per_s
from benchmarks.gpu.engine_checks import Floors, Load, check_model
from benchmarks.gpu.kernel_checks import CASES, Case, check_kernels, time_decode_attention
from benchmarks.gpu.random_models import ONE_BILLION, SEVEN_BILLION, TINY, ModelShape


@dataclass(frozen=True)
class Size:
    lengths: tuple[int, ...]
    cases: tuple[Case, ...]
    models: tuple[ModelShape, ...]
    load: Load
    floor_bytes: int
    floor_size: int
    attention: tuple[tuple[int, int], ...]
    """(batch, context)"""
    repetitions: int

    def floors(self, device: torch.device) -> Floors:
        return Floors(read_bytes_per_s(device, self.floor_bytes), flops_per_s(device, self.floor_size))

    def check_kernels(self, device: torch.device) -> list[dict[str, Any]]:
        return check_kernels(device, list(self.lengths), list(self.cases))

    def check_models(self, device: torch.device, floors: Floors) -> list[dict[str, Any]]:
        """A model that fails does not keep the others from being checked."""
        return [_reported(shape, device, self.load, floors) for shape in self.models]

    def time_attention(self, device: torch.device) -> list[dict[str, float]]:
        return [
            time_decode_attention(device, batch, context, self.repetitions)
            for batch, context in self.attention
        ]


FULL = Size(
    lengths=(1, 2, 17, 100, 300, 33, 16, 250),
    cases=tuple(CASES),
    models=(ONE_BILLION, SEVEN_BILLION),
    load=Load(),
    floor_bytes=2**31,
    floor_size=8192,
    attention=((64, 1024), (1, 16_384), (8, 8192)),
    repetitions=20,
)
MINIATURE = Size(
    lengths=(1, 20),
    cases=(Case(4, 2, 16, window=9), Case(3, 1, 20, softcap=5.0, has_sinks=True)),
    models=(TINY,),
    load=Load(batches=(1, 2), context=6, outputs=3, prefill=18),
    floor_bytes=2**20,
    floor_size=64,
    attention=((1, 16),),
    repetitions=1,
)


def of(device: torch.device) -> Size:
    return FULL if device.type == "cuda" else MINIATURE


def _reported(shape: ModelShape, device: torch.device, load: Load, floors: Floors) -> dict[str, Any]:
    try:
        return check_model(shape, device, load, floors)
    except Exception as error:  # the report of what went wrong is what this program is for
        return {"name": shape.name, "failed": repr(error), "trace": traceback.format_exc()}
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()
