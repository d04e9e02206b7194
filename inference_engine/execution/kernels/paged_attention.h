// Attention over paged KV blocks; paged_attention.cpp draws their layout.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace octavo {

// Puts rows of key and value [T, K, D] into the slots that they belong to; slot -1 is skipped.
class KvWriter {
 public:
  KvWriter(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
           const at::Tensor& slot_mapping);  // what all of them refer to outlives the writer
  void write(int64_t row) const;             // different rows may be written by different threads

 private:
  template <typename T>
  void write_as(int64_t row) const;

  bool is_float_;
  int64_t num_blocks_, num_heads_, dim_, padded_dim_;
  void *keys_, *values_;
  const void *key_, *value_;
  int64_t key_strides_[2], value_strides_[2];
  const int64_t* slots_;
};

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
