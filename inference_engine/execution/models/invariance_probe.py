"""The start-up probe: does a row come out bitwise the same at every row count it can run at?

Every row-wise part of the model is run once per row bucket on the last rows of one fixed input, so that a
row is seen at another count, another place and another memory alignment than in the largest batch. As a
side effect every shape is warm when the engine says it is ready. Attention is not row-wise: its backend
answers for itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inference_engine.execution.models.model_parts import final_norm_of, rowwise_parts_of_layers
from inference_engine.execution.products.linear import PackedLinear
from inference_engine.execution.products.row_buckets import EXACT_UP_TO, all_buckets

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""


@dataclass(slots=True)
class ProbeReport:
    varying: list[str] = field(default_factory=list)
    """Parts whose rows depend on the row count, padded or not."""
    min_rows: dict[str, int] = field(default_factory=dict)
    """Part -> rows that its products are padded to, at least."""

    @property
    def is_invariant(self) -> bool:
        return not self.varying


@dataclass(frozen=True, slots=True)
class RowwisePart:
    """Modules of one kind and shape, each a function of single rows [rows, width]."""

    name: str
    width: int
    max_rows: int
    modules: list[nn.Module]

    def buckets(self) -> list[int]:
        """Row counts to probe, rising. Our own products have nothing to warm and no code that depends on more
        rows than a few: of the large counts only the largest is tried."""
        buckets = all_buckets(self.max_rows)
        linears = [child for child in self.modules[0].modules() if isinstance(child, PackedLinear)]
        if not linears or not all(linear.is_native for linear in linears):
            return buckets
        return sorted({*(count for count in buckets if count <= EXACT_UP_TO), buckets[-1]})


@torch.inference_mode()
def probe_model(module: Any, max_rows: int, max_sampled_rows: int, progress: Progress) -> ProbeReport:
    """Probe and warm every row-wise part of a packed model, up to max_rows rows in a step, of which
    max_sampled_rows go through the head. Sets `min_rows` of its linear layers."""
    parts = rowwise_parts(module, max_rows, max_sampled_rows)
    report = ProbeReport()
    for index, part in enumerate(parts):
        progress(index, len(parts))
        _probe_part(part, module.dtype, module.device, report)
    progress(len(parts), len(parts))
    return report


def rowwise_parts(module: Any, max_rows: int, max_sampled_rows: int) -> list[RowwisePart]:
    """The linear layers first, then what is built of them: all but attention and the embeddings."""
    parts: dict[str, RowwisePart] = {}
    for child, width in _rowwise_modules(module):
        rows = max_sampled_rows if child is module.lm_head else max_rows
        name = _part_name(child)
        parts.setdefault(name, RowwisePart(name, width, rows, [])).modules.append(child)
    return list(parts.values())


def _rowwise_modules(module: Any) -> Iterator[tuple[nn.Module, int]]:
    """(module, input width)."""
    for child in module.modules():
        if isinstance(child, PackedLinear):
            yield child, child.in_features
    hidden = module.config.hidden_size
    yield from ((child, hidden) for child in rowwise_parts_of_layers(module))
    yield final_norm_of(module), hidden


def _part_name(module: nn.Module) -> str:
    linears = [child for child in module.modules() if isinstance(child, PackedLinear)]
    shapes = [f"{linear.in_features}x{linear.out_features}" for linear in linears]
    shapes += ["x".join(map(str, parameter.shape)) for parameter in module.parameters()]
    return f"{type(module).__name__} {' '.join(shapes)}"


def _probe_part(part: RowwisePart, dtype: torch.dtype, device: torch.device, report: ProbeReport) -> None:
    subject = part.modules[0]
    buckets = part.buckets()
    rows = _fixed_rows(buckets[-1], part.width, dtype).to(device)
    varying = _varying_buckets(subject, rows, buckets)
    linears = [module for module in part.modules if isinstance(module, PackedLinear)]
    if varying and linears and varying[-1] < EXACT_UP_TO:
        report.min_rows[part.name] = varying[-1] + 1
        for linear in linears:
            linear.min_rows = varying[-1] + 1
        varying = _varying_buckets(subject, rows, varying)
    if varying:
        report.varying.append(part.name)


def _varying_buckets(subject: nn.Module, rows: Tensor, buckets: list[int]) -> list[int]:
    """Buckets at which the last rows come out otherwise than among all rows."""
    whole = _output(subject, rows)
    return [count for count in buckets if not torch.equal(_output(subject, rows[-count:]), whole[-count:])]


def _output(subject: nn.Module, rows: Tensor) -> Tensor:
    """Of a module that gives rows, or a pair that begins with them."""
    output = subject(rows)
    first: Tensor = output[0] if isinstance(output, tuple) else output
    return first


def _fixed_rows(num_rows: int, width: int, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(num_rows, width, generator=generator).to(dtype)
