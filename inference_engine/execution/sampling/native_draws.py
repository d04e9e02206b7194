"""Draws in our own kernel: kernels/sampling.cpp has the algorithm. No sorting, no matrix but the logits."""

import functools

import torch
from torch import Tensor

from inference_engine.execution.attention.build import KernelBuildError, load_kernel
from inference_engine.execution.sampling.draws import Filters


@functools.cache
def has_native_draws() -> bool:
    try:
        load_kernel()
    except KernelBuildError:
        return False
    return True


class NativeDraws:
    """On the CPU. Raises KernelBuildError where the kernel can't be had."""

    def __init__(self) -> None:
        load_kernel()
        self._kernel = torch.ops.octavo

    def highest_if_finite(self, logits: Tensor) -> Tensor:
        highest: Tensor = self._kernel.highest_if_finite(logits)
        return highest

    def first_highest(self, logits: Tensor) -> Tensor:
        ids: Tensor = self._kernel.first_highest(logits)
        return ids

    def draw(
        self,
        logits: Tensor,
        index: Tensor,
        firsts: Tensor,
        temperatures: Tensor,
        filters: Filters,
        uniform: Tensor,
    ) -> Tensor:
        tokens: Tensor = self._kernel.draw_tokens(
            logits, index, firsts, temperatures, filters.top_k, filters.top_p, filters.min_p, uniform
        )
        return tokens
