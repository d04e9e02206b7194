// Paged attention as tensors ask for it, checked.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "paged_attention.h"

namespace octavo {

// key and value [T, K, D]. What all of them refer to outlives the writer.
KvWriter writer_of(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& key, const at::Tensor& value,
                   const at::Tensor& slot_mapping);

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping);

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                  const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                  const Rule& rule, at::Tensor out);

// The same with the rule in pieces, as Python gives it; sinks is fp32.
void attend_by_rule(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                    const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                    double scale, int64_t window, double softcap, const std::optional<at::Tensor>& sinks,
                    at::Tensor out);

}  // namespace octavo
