// What Python sees: torch.ops.octavo.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include "activations.h"
#include "attention_tensors.h"
#include "decoder.h"
#include "huge_pages.h"
#include "packed_weight.h"
#include "spread.h"

namespace octavo {
namespace {

at::Tensor allocate_huge(int64_t num_bytes) {
  TORCH_CHECK(num_bytes > 0, "nothing to allocate");
  auto memory = allocate_on_huge_pages(static_cast<size_t>(num_bytes));
  return at::from_blob(memory.get(), {num_bytes}, [memory](void*) {}, at::kByte);
}

bool has_products() { return has_bf16_products(); }
bool has_products_in_int8() { return has_int8_products(); }

const bf16* bits(const at::Tensor& tensor) { return static_cast<const bf16*>(tensor.const_data_ptr()); }

// weight bf16 [outputs, inputs] -> out, bf16 of the size that products.h says.
void pack_weight(const at::Tensor& weight, at::Tensor out) {
  TORCH_CHECK(weight.dim() == 2 && weight.is_contiguous() && weight.scalar_type() == at::kBFloat16 &&
                  weight.size(1) % 2 == 0,
              "a weight to pack must be contiguous bf16 [outputs, even inputs]");
  const int64_t panels = (weight.size(0) + kPanel - 1) / kPanel;
  TORCH_CHECK(out.is_contiguous() && out.scalar_type() == at::kBFloat16 &&
                  out.numel() == panels * kPanel * weight.size(1),
              "out must have room for ", panels, " panels");
  pack(bits(weight), weight.size(0), weight.size(1), static_cast<bf16*>(out.mutable_data_ptr()));
}

// A weight that `pack` made -> the same in 8 bits.
at::Tensor quantise_packed(const at::Tensor& packed, int64_t inputs, int64_t outputs) {
  TORCH_CHECK(has_int8_products(), "the kernels were compiled for a CPU without products in int8");
  TORCH_CHECK(packed.scalar_type() == at::kBFloat16, "only a bf16 weight can be quantised");
  const Weight weight = weight_of(packed, inputs, outputs);
  at::Tensor levels = allocate_huge(weight.num_panels() * num_groups(inputs) * kGroupBytes);
  quantise(weight, levels.mutable_data_ptr<uint8_t>());
  return levels;
}

Weight checked(const at::Tensor& x, const at::Tensor& packed, int64_t outputs) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && x.scalar_type() == at::kBFloat16,
              "x must be contiguous bf16 [rows, inputs]");
  return weight_of(packed, x.size(1), outputs);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& packed, const std::optional<at::Tensor>& bias,
                  int64_t outputs, bool in_float) {
  const Weight weight = checked(x, packed, outputs);
  TORCH_CHECK(!bias || (bias->scalar_type() == at::kFloat && bias->is_contiguous() && bias->numel() == outputs),
              "a bias must be fp32 [outputs]");
  const float* start = bias ? bias->const_data_ptr<float>() : nullptr;
  at::Tensor out = at::empty({x.size(0), outputs}, x.options().dtype(in_float ? at::kFloat : at::kBFloat16));
  void* target = out.mutable_data_ptr();
  const ProductInput rows(bits(x), x.size(0), weight);
  spread(weight.num_panels(), [&](int64_t panel) {
    if (in_float) panel_to_float(weight, panel, rows, x.size(0), start, static_cast<float*>(target));
    else panel_to_bf16(weight, panel, rows, x.size(0), start, static_cast<bf16*>(target));
  });
  return out;
}

at::Tensor gated(const at::Tensor& x, const at::Tensor& packed, int64_t inner) {
  TORCH_CHECK(inner % 16 == 0, "the inner width must be a multiple of 16");
  const Weight weight = checked(x, packed, 2 * inner);
  at::Tensor out = at::empty({x.size(0), inner}, x.options());
  auto* target = static_cast<bf16*>(out.mutable_data_ptr());
  const ProductInput rows(bits(x), x.size(0), weight);
  spread(weight.num_panels(), [&](int64_t panel) { panel_gated(weight, panel, rows, x.size(0), target); });
  return out;
}

}  // namespace
}  // namespace octavo

TORCH_LIBRARY(octavo, library) {
  library.def("allocate_huge(int num_bytes) -> Tensor", octavo::allocate_huge);
  library.def("has_products() -> bool", octavo::has_products);
  library.def("has_int8_products() -> bool", octavo::has_products_in_int8);
  library.def("write(Tensor(a!) keys, Tensor(b!) values, Tensor key, Tensor value, Tensor slot_mapping) -> ()");
  library.def(
      "attend(Tensor keys, Tensor values, Tensor query, Tensor positions, Tensor sequence_of_row, "
      "Tensor block_table, float scale, int window, float softcap, Tensor? sinks, Tensor(a!) out) -> ()");
  library.def("activate(Tensor x, Tensor? up, int activation) -> Tensor");
  library.def("activate_clamped(Tensor gate, Tensor up, float alpha, float limit) -> Tensor");
  library.def("soft_cap(Tensor(a!) x, float cap) -> ()");
  library.def("pack(Tensor weight, Tensor(a!) out) -> ()");
  library.def("quantise(Tensor packed, int inputs, int outputs) -> Tensor");
  library.def("linear(Tensor x, Tensor packed, Tensor? bias, int outputs, bool in_float) -> Tensor");
  library.def("gated(Tensor x, Tensor packed, int inner) -> Tensor");
  library.def(
      "decode_layers(Tensor hidden, Tensor[] weights, Tensor final_norm, float eps, Tensor(a!)[] keys, "
      "Tensor(b!)[] values, Tensor positions, Tensor slot_mapping, Tensor sequence_of_row, Tensor block_table, "
      "Tensor cos, Tensor signed_sin, float scale, int[] windows, int num_heads, int inner) -> Tensor");
}

TORCH_LIBRARY_IMPL(octavo, CPU, library) {
  library.impl("write", octavo::write_kv);
  library.impl("attend", octavo::attend_by_rule);
  library.impl("activate", octavo::activate);
  library.impl("activate_clamped", octavo::activate_clamped);
  library.impl("soft_cap", octavo::soft_cap);
  library.impl("pack", octavo::pack_weight);
  library.impl("quantise", octavo::quantise_packed);
  library.impl("linear", octavo::linear);
  library.impl("gated", octavo::gated);
  library.impl("decode_layers", octavo::decode_layers);
}
