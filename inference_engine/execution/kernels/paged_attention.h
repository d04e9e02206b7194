// Attention over paged KV blocks; paged_attention.cpp draws their layout.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

namespace octavo {

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping);

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                  const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                  double scale, int64_t window, at::Tensor out);

}  // namespace octavo
