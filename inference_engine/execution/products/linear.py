"""Linear layers with their weights packed once, into our own kernels' layout or else into oneDNN's.

Packing makes them fast and row-invariant: a row's result does not depend on how many rows run beside it; in
oneDNN's from two rows on. The start-up probe checks exactly that and raises `min_rows` where it must.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from inference_engine.execution.products.native_products import pack_native
from inference_engine.execution.products.row_buckets import SMALLEST


class PackedLinear(nn.Module):
    """x @ weight.T + bias for x [..., in_features]; weight is [out_features, in_features]."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.dtype = weight.dtype
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        native = pack_native(weight.detach())
        packed = pack_weight(weight.detach()) if native is None else native
        self.is_native, self.is_packed = native is not None, packed is not None
        self.weight = weight.detach() if packed is None else packed
        self.native_bias = None if bias is None else bias.detach().float()
        self.min_rows = SMALLEST

    @classmethod
    def stack(cls, *linears: nn.Linear) -> "PackedLinear":
        """One product that computes several of the same input; their outputs lie side by side."""
        biases = [linear.bias for linear in linears if linear.bias is not None]
        assert len(biases) in (0, len(linears)), "either all of the stacked layers have a bias or none"
        weight = torch.cat([linear.weight.detach() for linear in linears])
        return cls(weight, torch.cat([bias.detach() for bias in biases]) if biases else None)

    def quantise(self) -> None:
        """From here on weights and rows are rounded to 8 bits. Only a native layer can be."""
        self.weight = torch.ops.octavo.quantise(self.weight, self.in_features, self.out_features)

    def forward(self, x: Tensor) -> Tensor:
        if self.is_native:
            return self.product(x)
        num_rows = x.numel() // self.in_features
        if num_rows >= self.min_rows:
            return self.product(x)
        padding = x.new_zeros(self.min_rows - num_rows, self.in_features)
        rows = self.product(torch.cat([x.reshape(num_rows, self.in_features), padding]))
        return rows[:num_rows].reshape(*x.shape[:-1], self.out_features)

    def product(self, x: Tensor) -> Tensor:
        """The product at exactly the rows given."""
        if self.is_native:
            return self._native_product(x, in_float=False)
        if not self.is_packed:
            return functional.linear(x, self.weight, self.bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product

    def product_in_float(self, x: Tensor) -> Tensor:
        """`forward` with its result in fp32, unrounded where the product is our own."""
        return self._native_product(x, in_float=True) if self.is_native else self(x).float()

    def _native_product(self, x: Tensor, *, in_float: bool) -> Tensor:
        rows = x.reshape(-1, self.in_features).contiguous()
        product: Tensor = torch.ops.octavo.linear(
            rows, self.weight, self.native_bias, self.out_features, in_float
        )
        return product.view(*x.shape[:-1], self.out_features)


def pack_weight(weight: Tensor) -> Tensor | None:
    """The weight in oneDNN's own layout; None where this build of torch can't pack it."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return None
    try:
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 16)
    except (AttributeError, RuntimeError):
        return None
    return packed
