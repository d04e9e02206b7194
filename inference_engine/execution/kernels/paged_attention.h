// Attention over paged KV blocks; paged_attention.cpp draws their layout.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace octavo {

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping);

// What lies between the scores and their softmax.
struct Rule {
  float scale;
  int64_t window = 0;            // positions seen; 0 sees all
  float softcap = 0;             // s becomes softcap * tanh(s / softcap); 0 leaves it
  const float* sinks = nullptr;  // [query heads]: one more score for each in its sum
};

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                  const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                  const Rule& rule, at::Tensor out);

// The same with the rule in pieces, as Python gives it; sinks is fp32.
void attend_by_rule(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                    const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                    double scale, int64_t window, double softcap, const std::optional<at::Tensor>& sinks,
                    at::Tensor out);

}  // namespace octavo
