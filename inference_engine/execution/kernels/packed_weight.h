// Tensors as the products take them, checked.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "int8_products.h"

namespace octavo {

// packed: bf16 as `pack` made it, or bytes as `quantise` made them.
inline Weight weight_of(const at::Tensor& packed, int64_t inputs, int64_t outputs) {
  const Weight weight{packed.const_data_ptr(), inputs, outputs, packed.scalar_type() == at::kByte};
  TORCH_CHECK(weight.is_int8 ? has_int8_products() : has_bf16_products(),
              "the kernels were compiled for a CPU without products in ", weight.is_int8 ? "int8" : "bf16");
  TORCH_CHECK(packed.is_contiguous() && (weight.is_int8 || packed.scalar_type() == at::kBFloat16) && inputs % 2 == 0 &&
                  packed.numel() * packed.itemsize() == weight.num_panels() * weight.panel_bytes(),
              "the weight was not packed for ", inputs, " inputs and ", outputs, " outputs");
  return weight;
}

// Rows bf16 [rows][inputs], each rounded to 8 bits where the weight wants it so.
class ProductInput {
 public:
  ProductInput(const bf16* rows, int64_t num_rows, const Weight& weight) : input_{rows, {}, weight.inputs} {
    if (!weight.is_int8) return;
    int8_ = std::make_unique<Int8Rows>(num_rows, weight.inputs);
    input_.in_int8 = int8_->input();
    at::parallel_for(0, num_rows, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) int8_->take(row, rows + row * weight.inputs);
    });
  }
  operator const Input&() const { return input_; }
  Input from(int64_t row) const { return input_.from(row); }

 private:
  static constexpr int64_t kGrain = 8;  // rows that are worth another thread
  Input input_;
  std::unique_ptr<Int8Rows> int8_;
};

}  // namespace octavo
