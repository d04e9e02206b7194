// All layers of a Llama or Mistral in one call: the products of products.h with what lies between them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace octavo {

// hidden bf16 [T, hidden], the embedded rows -> bf16 [T, hidden], after the final norm.
//
// weights: for each layer norm fp32 [hidden], qkv packed, o packed, norm fp32, gate_up packed and interleaved, down
// packed. cos and signed_sin are tables bf16 [positions, D]. windows: for each layer, 0 sees all.
at::Tensor decode_layers(
    const at::Tensor& hidden, at::TensorList weights, const at::Tensor& final_norm, double eps, at::TensorList keys,
    at::TensorList values, const at::Tensor& positions, const at::Tensor& slot_mapping,
    const at::Tensor& sequence_of_row, const at::Tensor& block_table, const at::Tensor& cos,
    const at::Tensor& signed_sin, double scale, at::IntArrayRef windows, int64_t num_heads, int64_t inner);

}  // namespace octavo
