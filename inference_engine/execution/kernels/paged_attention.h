// Attention over paged KV blocks; paged_attention.cpp draws their layout. Knows nothing of torch.
#pragma once

#include <cstdint>

namespace octavo {

// The blocks of one layer, fp32 or bf16. D is even and at most 512.
struct KvBlocks {
  void *keys, *values;
  int64_t num_blocks, num_heads, dim, padded_dim;
  bool is_float;
};

// Queries, keys or values [T][heads][D] of the blocks' type; strides in elements, that of D is 1.
struct HeadRows {
  const void* data;
  int64_t num_rows, num_heads, row_stride, head_stride;
};

// Puts rows of key and value into the slots that they belong to; slot -1 is skipped.
struct KvWriter {
  KvBlocks blocks;
  HeadRows key, value;
  const int64_t* slots;  // [T]

  // Different rows may be written by different threads. Throws std::runtime_error for a slot outside the pool.
  void write(int64_t row) const;

 private:
  template <typename T>
  void write_as(int64_t row) const;
};

// Where every row stands.
struct Places {
  const int64_t* positions;        // [T]
  const int32_t* sequence_of_row;  // [T]; -1 is a padding row, whose result is zeros
  const int32_t* block_table;      // [num_sequences][table_width]
  int64_t num_sequences, table_width;
};

// What lies between the scores and their softmax.
struct Rule {
  float scale;
  int64_t window = 0;            // positions seen; 0 sees all
  float softcap = 0;             // s becomes softcap * tanh(s / softcap); 0 leaves it
  const float* sinks = nullptr;  // [query heads]: one more score for each in its sum
};

// out [T][query heads][D]. Throws std::runtime_error for what lies outside the table or the pool.
void attend(const KvBlocks& blocks, const HeadRows& query, const Places& places, const Rule& rule, void* out);

}  // namespace octavo
