// Paged attention on the CPU: one function for prefill and decode, one reduction order.
//
// Layout of one layer, in elements (bf16 or fp32); K KV heads, D head dimension, P = D rounded up to 16:
//
//   keys    [num_blocks][K][D][16]     a block's keys are transposed: one vector holds dimension d of 16 tokens
//   values  [num_blocks][K][16][P]     one vector holds 16 dimensions of one token; the last P - D are zeros
//
//   position p of a sequence: block block_table[p / 16], token p % 16 of that block
//
// Every query row walks over its own tiles of 16 absolute positions, from its first seen position to its own, with
// an online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018):
//
//   tile      0 .. 15 | 16 .. 31 | 32 .. 47          row at position 37, window of 30: sees 8 .. 37
//   seen            ==  ========   ======            partial, whole, partial
//
// Where the tiles begin depends on the position alone, and a row shares no arithmetic with another, so a row's
// result is bitwise the same in every batch, chunking and placement of blocks. Threads only take whole rows.
//
#include "paged_attention.h"

#include <atomic>

#include "vectors.h"

namespace octavo {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kMaxDim = 512;
constexpr int kMaxHeads = 4;  // query heads that share one pass over a tile

template <typename T>
constexpr int64_t kLine = 64 / sizeof(T);  // elements in a cache line
template <typename T>
constexpr int64_t kLines = 2 * kTile / kLine<T>;  // cache lines in two vectors of a tile

struct Layer {
  const void* keys;
  const void* values;
  int64_t num_blocks, num_heads, dim, padded_dim;
};

// scores[g][token] = sum over d of query[g][d] * key[d][token], even and odd d apart.
// Blocks lie anywhere in the pool, so the hardware can't foresee the next one: it is prefetched meanwhile.
template <typename T, int G>
inline void score_tile(
    const T* keys, const float* query, int64_t dim, const T* next_keys, const T* next_values, Floats* scores) {
  Floats even[G] = {}, odd[G] = {};
  for (int64_t d = 0; d < dim; d += 2) {
    for (int64_t line = 0; line < kLines<T>; ++line) {
      __builtin_prefetch(next_keys + d * kTile + line * kLine<T>, 0, 2);
      __builtin_prefetch(next_values + d * kTile + line * kLine<T>, 0, 2);
    }
    Floats key0 = load(keys + d * kTile), key1 = load(keys + (d + 1) * kTile);
    for (int g = 0; g < G; ++g) {
      even[g] += query[g * dim + d] * key0;
      odd[g] += query[g * dim + d + 1] * key1;
    }
  }
  for (int g = 0; g < G; ++g) scores[g] = even[g] + odd[g];
}

// output[g] = output[g] * decay[g] + sum over seen tokens of weights[g][token] * value[token], in token order.
template <typename T, int G>
inline void add_values(
    const T* values, const float* weights, Floats decay, int first, int last, int64_t dim, float* output) {
  for (int64_t d = 0; d < dim; d += kTile) {
    Floats sum[G];
    for (int g = 0; g < G; ++g) sum[g] = load(output + g * dim + d) * decay[g];
    for (int token = first; token < last; ++token) {
      Floats value = load(values + token * dim + d);
      for (int g = 0; g < G; ++g) sum[g] += weights[g * kTile + token] * value;
    }
    for (int g = 0; g < G; ++g) store(output + g * dim + d, sum[g]);
  }
}

// One row and one KV head: the query heads that share it see positions begin .. end - 1.
struct Item {
  int64_t row, head, begin, end;
  const int32_t* table;  // of the row's sequence; nullptr for a padding row

  int64_t part(const Layer& layer, int64_t tile) const {  // which [D][16] of keys, [16][P] of values
    const int64_t block = table[tile];
    TORCH_CHECK(block >= 0 && block < layer.num_blocks, "block ", block, " of ", layer.num_blocks);
    return block * layer.num_heads + head;
  }
  int64_t first_part(const Layer& layer) const { return table ? part(layer, begin / kTile) : 0; }
};

// Attention of G query heads. query [G][D], scaled; output [G][P], not yet divided by total [G].
// `upcoming` is the part that this thread will read first when it is done here.
template <typename T, int G>
void attend_heads(
    const Layer& layer, const Item& item, int64_t upcoming, const float* query, float* output, float* total) {
  const Ints lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const T* keys = static_cast<const T*>(layer.keys);
  const T* values = static_cast<const T*>(layer.values);
  Floats sums[G] = {};
  float maximum[G];
  for (int g = 0; g < G; ++g) maximum[g] = -INFINITY;
  std::memset(output, 0, sizeof(float) * G * layer.padded_dim);
  int64_t part = item.first_part(layer);
  for (int64_t tile = item.begin / kTile; tile * kTile < item.end; ++tile) {
    const int64_t next = (tile + 1) * kTile < item.end ? item.part(layer, tile + 1) : upcoming;
    const int first = std::max<int64_t>(item.begin - tile * kTile, 0);
    const int last = std::min<int64_t>(item.end - tile * kTile, kTile);
    Floats scores[G];
    score_tile<T, G>(keys + part * layer.dim * kTile, query, layer.dim, keys + next * layer.dim * kTile,
                     values + next * layer.padded_dim * kTile, scores);
    Floats moved = {};
    for (int g = 0; g < G; ++g) {
      // Lanes that are not seen may hold anything, NaN included: they never leave their lane.
      scores[g] = (lane >= first) & (lane < last) ? scores[g] : splat(-INFINITY);
      const float highest = std::max(maximum[g], horizontal_max(scores[g]));
      moved[g] = maximum[g] - highest;
      maximum[g] = highest;
    }
    const Floats decay = exp_nonpositive(moved);
    float weights[G * kTile];
    for (int g = 0; g < G; ++g) {
      const Floats weight = exp_nonpositive(scores[g] - maximum[g]);
      sums[g] = sums[g] * decay[g] + weight;
      store(weights + g * kTile, weight);
    }
    add_values<T, G>(
        values + part * layer.padded_dim * kTile, weights, decay, first, last, layer.padded_dim, output);
    part = next;
  }
  for (int g = 0; g < G; ++g) total[g] = horizontal_sum(sums[g]);
}

template <typename T>
void attend_heads(
    int count, const Layer& layer, const Item& item, int64_t upcoming, const float* query, float* output,
    float* total) {
  switch (count) {
    case 1: return attend_heads<T, 1>(layer, item, upcoming, query, output, total);
    case 2: return attend_heads<T, 2>(layer, item, upcoming, query, output, total);
    case 3: return attend_heads<T, 3>(layer, item, upcoming, query, output, total);
    default: return attend_heads<T, 4>(layer, item, upcoming, query, output, total);
  }
}

// All `group` query heads of one item. query and out point at the first of them.
template <typename T>
void attend_item(
    const Layer& layer, const Item& item, int64_t upcoming, float scale, const T* query, int64_t query_stride,
    int64_t group, T* out) {
  alignas(64) float scaled[kMaxHeads * kMaxDim], output[kMaxHeads * kMaxDim];
  float total[kMaxHeads];
  for (int64_t done = 0; done < group; done += kMaxHeads) {
    const int count = std::min<int64_t>(kMaxHeads, group - done);
    for (int g = 0; g < count; ++g)
      for (int64_t d = 0; d < layer.dim; ++d)
        scaled[g * layer.dim + d] = to_float(query[(done + g) * query_stride + d]) * scale;
    attend_heads<T>(count, layer, item, upcoming, scaled, output, total);
    for (int g = 0; g < count; ++g)
      for (int64_t d = 0; d < layer.dim; ++d)
        from_float(output[g * layer.padded_dim + d] / total[g], out + (done + g) * layer.dim + d);
  }
}

// The rows of one call, as pairs of row and KV head.
struct Items {
  const at::Tensor &positions, &sequence_of_row, &block_table;
  int64_t num_heads, window;

  int64_t size() const { return positions.size(0) * num_heads; }

  Item operator[](int64_t index) const {
    const int64_t row = index / num_heads;
    const int64_t sequence = sequence_of_row.const_data_ptr<int32_t>()[row];
    const int64_t end = positions.const_data_ptr<int64_t>()[row] + 1;
    const int64_t begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
    if (sequence < 0) return {row, index % num_heads, 0, 0, nullptr};
    TORCH_CHECK(sequence < block_table.size(0) && end > 0 && end <= block_table.size(1) * kTile, "row ", row,
                " at position ", end - 1, " lies outside the block table");
    const int32_t* table = block_table.const_data_ptr<int32_t>() + sequence * block_table.size(1);
    return {row, index % num_heads, begin, end, table};
  }
};

template <typename T>
void attend_items(const Layer& layer, const Items& items, const at::Tensor& query, double scale, at::Tensor& out) {
  const int64_t group = query.size(1) / layer.num_heads;
  const auto* queries = static_cast<const T*>(query.const_data_ptr());
  auto* outputs = static_cast<T*>(out.mutable_data_ptr());
  std::atomic<int64_t> num_taken{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) {
    for (int64_t index = num_taken++, following; index < items.size(); index = following) {
      following = num_taken++;
      const Item item = items[index];
      const int64_t upcoming = following < items.size() ? items[following].first_part(layer) : 0;
      T* result = outputs + (item.row * query.size(1) + item.head * group) * layer.dim;
      const T* first_query = queries + item.row * query.stride(0) + item.head * group * query.stride(1);
      if (item.table)
        attend_item<T>(layer, item, upcoming, scale, first_query, query.stride(1), group, result);
      else
        std::memset(result, 0, sizeof(T) * group * layer.dim);
    }
  });
}

template <typename T>
void write_rows(at::Tensor& keys, at::Tensor& values, const at::Tensor& key, const at::Tensor& value,
                const at::Tensor& slot_mapping) {
  const int64_t num_heads = keys.size(1), dim = keys.size(2), padded_dim = values.size(3);
  const auto* slots = slot_mapping.const_data_ptr<int64_t>();
  at::parallel_for(0, key.size(0), 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (slots[row] < 0) continue;
      const int64_t block = slots[row] / kTile, token = slots[row] % kTile;
      TORCH_CHECK(block < keys.size(0), "slot ", slots[row], " lies outside the pool");
      for (int64_t head = 0; head < num_heads; ++head) {
        const T* k = static_cast<const T*>(key.const_data_ptr()) + row * key.stride(0) + head * key.stride(1);
        const T* v = static_cast<const T*>(value.const_data_ptr()) + row * value.stride(0) + head * value.stride(1);
        T* k_out = static_cast<T*>(keys.mutable_data_ptr()) + (block * num_heads + head) * dim * kTile + token;
        T* v_out = static_cast<T*>(values.mutable_data_ptr()) +
            ((block * num_heads + head) * kTile + token) * padded_dim;
        for (int64_t d = 0; d < dim; ++d) k_out[d * kTile] = k[d];
        std::memcpy(v_out, v, sizeof(T) * dim);
      }
    }
  });
}

void check_rows(const at::Tensor& rows, const at::Tensor& keys, const char* name) {
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) == keys.size(2) && rows.stride(2) == 1, name, " must be [T, heads, ",
              keys.size(2), "] with a last stride of 1");
  TORCH_CHECK(rows.scalar_type() == keys.scalar_type(), name, " must have the dtype of the KV blocks");
}

}  // namespace

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping) {
  check_rows(key, keys, "key");
  check_rows(value, keys, "value");
  TORCH_CHECK(key.size(1) == keys.size(1) && value.size(1) == keys.size(1), "key and value need one row a KV head");
  TORCH_CHECK(slot_mapping.is_contiguous() && key.size(0) == slot_mapping.size(0) && value.size(0) == key.size(0), "one slot for each row");
  if (keys.scalar_type() == at::kFloat) return write_rows<float>(keys, values, key, value, slot_mapping);
  write_rows<bf16>(keys, values, key, value, slot_mapping);
}

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query, const at::Tensor& positions,
            const at::Tensor& sequence_of_row, const at::Tensor& block_table, double scale, int64_t window,
            at::Tensor out) {
  check_rows(query, keys, "query");
  TORCH_CHECK(query.size(1) % keys.size(1) == 0, "query heads must be a multiple of KV heads");
  TORCH_CHECK(query.size(0) == positions.size(0) && query.size(0) == sequence_of_row.size(0),
              "one position for each row");
  TORCH_CHECK(out.is_contiguous() && out.sizes() == query.sizes(), "out must be contiguous, of the query's shape");
  TORCH_CHECK(positions.is_contiguous() && sequence_of_row.is_contiguous() && block_table.is_contiguous(),
              "metadata must be contiguous");
  const Layer layer{keys.const_data_ptr(), values.const_data_ptr(), keys.size(0), keys.size(1), keys.size(2),
                    values.size(3)};
  const Items items{positions, sequence_of_row, block_table, layer.num_heads, window};
  if (keys.scalar_type() == at::kFloat) return attend_items<float>(layer, items, query, scale, out);
  attend_items<bf16>(layer, items, query, scale, out);
}

}  // namespace octavo
