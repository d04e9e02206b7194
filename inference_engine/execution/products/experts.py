"""Mixtures of experts whose rows do not depend on who else is routed where.

T rows, H hidden width, E experts, k of them chosen for each row. How many rows an expert gets depends on the
whole batch, so its products run at row buckets, at each of which the start-up probe has compared rows; and a
row's k results are added in the order of its own choice.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from inference_engine.execution.products.activations import Activation, clamped_gate
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.row_buckets import row_bucket

Choose = Callable[[Tensor], tuple[Tensor, Tensor]]
"""fp32 router logits [T, E] -> weights fp32 [T, k] and experts int64 [T, k]."""
Gate = Callable[[Tensor, Tensor], Tensor]


class Expert(nn.Module):
    """down(gate(first half, second half)) of one product."""

    def __init__(self, gate_up: PackedLinear, down: PackedLinear, gate: Gate) -> None:
        super().__init__()
        self.gate_up_proj, self.down_proj, self._gate = gate_up, down, gate

    def forward(self, rows: Tensor) -> Tensor:
        """[n, H] -> [n, H], for any n >= 1."""
        num_rows = rows.shape[0]
        padding = rows.new_zeros(row_bucket(num_rows) - num_rows, rows.shape[1])
        halves = self.gate_up_proj(torch.cat([rows, padding])).chunk(2, dim=-1)
        down: Tensor = self.down_proj(self._gate(*halves))
        return down[:num_rows]


class MixtureOfExperts(nn.Module):
    """Stands for a sparse block: routes each row to k experts and adds up what they give."""

    def __init__(self, router: PackedLinear, choose: Choose, experts: list[Expert]) -> None:
        super().__init__()
        self.router, self._choose = router, choose
        self.experts = nn.ModuleList(experts)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., H] -> the same shape."""
        rows = hidden_states.flatten(0, -2)
        weights, chosen = self._choose(self.router.product_in_float(rows))
        outputs = self._run_experts(rows, chosen).float()
        total = outputs[:, 0] * weights[:, :1]
        for choice in range(1, chosen.shape[1]):
            total = total + outputs[:, choice] * weights[:, choice : choice + 1]
        return total.to(hidden_states.dtype).view(hidden_states.shape)

    def _run_experts(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """[T, k, H]: what the chosen experts make of each row."""
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        outputs = rows.new_empty(chosen.numel(), rows.shape[1])
        for expert, places in zip(self.experts, order.split(counts), strict=True):
            if len(places):
                outputs[places] = expert(rows[places // chosen.shape[1]])
        return outputs.view(*chosen.shape, -1)


class WithRouterScores(MixtureOfExperts):
    """For layers that take a pair from their block and drop its second part."""

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return super().forward(hidden_states), None


def pack_mixture(original: Any) -> MixtureOfExperts:
    """Of a Mixtral's or a Qwen3-MoE's block."""
    router, experts = original.gate, original.experts
    is_normalised = getattr(router, "norm_topk_prob", True)
    activation = Activation(experts.act_fn)
    packed = [
        Expert(PackedLinear(gate_up), PackedLinear(down), activation)
        for gate_up, down in zip(experts.gate_up_proj, experts.down_proj, strict=True)
    ]

    def choose(logits: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = logits.softmax(-1).topk(router.top_k, dim=-1)
        return (weights / weights.sum(-1, keepdim=True) if is_normalised else weights), chosen

    return MixtureOfExperts(PackedLinear(router.weight), choose, packed)


def pack_gpt_oss_mixture(original: Any) -> WithRouterScores:
    """Of gpt-oss: gates and ups take turns in its weights, which are [H, 2 I], and all of it has biases."""
    router, experts = original.router, original.experts

    def gate(gates: Tensor, ups: Tensor) -> Tensor:
        return clamped_gate(gates, ups, experts.alpha, experts.limit)

    def choose(logits: Tensor) -> tuple[Tensor, Tensor]:
        values, chosen = logits.topk(router.top_k, dim=-1)
        return values.softmax(-1), chosen

    packed = [
        Expert(
            PackedLinear(_gates_first(experts.gate_up_proj[i].T), _gates_first(experts.gate_up_proj_bias[i])),
            PackedLinear(experts.down_proj[i].T.contiguous(), experts.down_proj_bias[i]),
            gate,
        )
        for i in range(experts.num_experts)
    ]
    return WithRouterScores(PackedLinear(router.weight, router.bias), choose, packed)


def _gates_first(rows: Tensor) -> Tensor:
    return torch.cat([rows[::2], rows[1::2]])
