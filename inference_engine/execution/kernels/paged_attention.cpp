// Paged attention on the CPU: one function for prefill and decode, one reduction order.
//
// Layout of one layer, in elements; K KV heads, D head dimension, P = D rounded up to 16:
//
//   fp32  keys    [num_blocks][K][D][16]         transposed: one vector holds dimension d of 16 tokens
//         values  [num_blocks][K][16][P]         one vector holds 16 dimensions of one token
//   bf16  keys    [num_blocks][K][D / 2][16][2]  the same of two dimensions side by side
//         values  [num_blocks][K][8][P][2]       the same of two tokens side by side
//
//   position p of a sequence: block block_table[p / 16], token p % 16 of that block
//
// Every query row walks over its own spans of two blocks, 32 absolute positions, from its first seen position to its
// own, with an online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018):
//
//   span      0 .. 15 , 16 .. 31 | 32 .. 47 , 48 .. 63    row at position 37, window of 30: sees 8 .. 37
//   seen            ==  ========   ======                 partial, whole, partial, none
//
// Where the spans begin depends on the position alone, and a row shares no arithmetic with another, so a row's
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

// Elements of T side by side in one lane, which one instruction multiplies and adds up.
template <typename T>
constexpr int64_t kPair = sizeof(T) == sizeof(bf16) ? 2 : 1;

template <typename T>
inline void prefetch_tile_part(int64_t d, const T* next_keys, const T* next_values) {
  for (int64_t line = 0; line < kLines<T>; ++line) {
    __builtin_prefetch(next_keys + d * kTile + line * kLine<T>, 0, 2);
    __builtin_prefetch(next_values + d * kTile + line * kLine<T>, 0, 2);
  }
}

// H blocks' keys, and what to fetch meanwhile: blocks lie anywhere in the pool, so the hardware can't foresee them.
template <typename T, int H>
struct Tiles {
  const T* keys[H];
  const T* next_keys[H];
  const T* next_values[H];

  void prefetch(int64_t d) const {
    for (int h = 0; h < H; ++h) prefetch_tile_part(d, next_keys[h], next_values[h]);
  }
};

// scores[h][g][token] = sum over d of query[g][d] * key[h][d][token]; even and odd d apart, of pairs where T has pairs.
template <int G, int H>
inline void score_tiles(const Tiles<float, H>& tiles, const float* query, int64_t dim, Floats (&scores)[H][G]) {
  Floats odd[H][G] = {};
  for (int h = 0; h < H; ++h)
    for (int g = 0; g < G; ++g) scores[h][g] = Floats{};
  for (int64_t d = 0; d < dim; d += 2) {
    tiles.prefetch(d);
    for (int h = 0; h < H; ++h) {
      const Floats key0 = load(tiles.keys[h] + d * kTile), key1 = load(tiles.keys[h] + (d + 1) * kTile);
      for (int g = 0; g < G; ++g) {
        scores[h][g] += query[g * dim + d] * key0;
        odd[h][g] += query[g * dim + d + 1] * key1;
      }
    }
  }
  for (int h = 0; h < H; ++h)
    for (int g = 0; g < G; ++g) scores[h][g] += odd[h][g];
}

template <int G, int H>
inline void add_key_pairs(const Tiles<bf16, H>& tiles, const bf16* query, int64_t dim, int64_t d, Floats (&sums)[H][G]) {
  Words pairs[H];
  for (int h = 0; h < H; ++h) pairs[h] = load_words(tiles.keys[h] + d * kTile);
  for (int g = 0; g < G; ++g) {
    const auto pair = load_raw<uint32_t>(query + g * dim + d);
    for (int h = 0; h < H; ++h) sums[h][g] = add_pair_products(sums[h][g], pair, pairs[h]);
  }
}

template <int G, int H>
inline void score_tiles(const Tiles<bf16, H>& tiles, const bf16* query, int64_t dim, Floats (&scores)[H][G]) {
  Floats even[H][G] = {}, odd[H][G] = {};
  int64_t d = 0;
  for (; d + 2 < dim; d += 4) {
    tiles.prefetch(d);
    tiles.prefetch(d + 2);
    add_key_pairs<G, H>(tiles, query, dim, d, even);
    add_key_pairs<G, H>(tiles, query, dim, d + 2, odd);
  }
  if (d < dim) add_key_pairs<G, H>(tiles, query, dim, d, even);
  for (int h = 0; h < H; ++h)
    for (int g = 0; g < G; ++g) scores[h][g] = even[h][g] + odd[h][g];
}

// W vectors of output[g] = output[g] * decay[g] + sum over seen tokens of weights[g][token] * value[token], in token
// order. Values of unseen tokens may be NaN, so they are never multiplied, not even by zero.
template <int G, int W>
inline void add_values_part(const float* values, const float* weights, Floats decay, int first, int last, int64_t dim,
                            float* output) {
  Floats sum[W][G];
  for (int w = 0; w < W; ++w)
    for (int g = 0; g < G; ++g) sum[w][g] = load(output + g * dim + w * kTile) * decay[g];
  for (int token = first; token < last; ++token)
    for (int w = 0; w < W; ++w) {
      const Floats value = load(values + token * dim + w * kTile);
      for (int g = 0; g < G; ++g) sum[w][g] += weights[g * kTile + token] * value;
    }
  for (int w = 0; w < W; ++w)
    for (int g = 0; g < G; ++g) store(output + g * dim + w * kTile, sum[w][g]);
}

template <int G, int W>
inline void add_values_part(const bf16* values, const bf16* weights, Floats decay, int first, int last, int64_t dim,
                            float* output) {
  Floats sum[W][G];
  for (int w = 0; w < W; ++w)
    for (int g = 0; g < G; ++g) sum[w][g] = load(output + g * dim + w * kTile) * decay[g];
  for (int token = first / 2 * 2; token < last; token += 2) {
    const uint32_t seen = (token >= first ? 0xffffu : 0u) | (token + 1 < last ? 0xffff0000u : 0u);
    for (int w = 0; w < W; ++w) {
      const Words pair = load_words(values + token * dim + w * kTile * 2) & seen;
      for (int g = 0; g < G; ++g)
        sum[w][g] = add_pair_products(sum[w][g], load_raw<uint32_t>(weights + g * kTile + token), pair);
    }
  }
  for (int w = 0; w < W; ++w)
    for (int g = 0; g < G; ++g) store(output + g * dim + w * kTile, sum[w][g]);
}

template <typename T, int G>
inline void add_values(
    const T* values, const T* weights, Floats decay, int first, int last, int64_t dim, float* output) {
  int64_t d = 0;
  for (; d + 4 * kTile <= dim; d += 4 * kTile)
    add_values_part<G, 4>(values + d * kPair<T>, weights, decay, first, last, dim, output + d);
  for (; d < dim; d += kTile)
    add_values_part<G, 1>(values + d * kPair<T>, weights, decay, first, last, dim, output + d);
}

constexpr int kHalves = 2;  // blocks in a span
constexpr int64_t kSpan = kHalves * kTile;

// Where the keys and values of a span lie: for each half which [D][16] and [16][P] of the pool.
struct Parts {
  int64_t of[kHalves];
};

// One row and one KV head: the query heads that share it see positions begin .. end - 1.
struct Item {
  int64_t row, head, begin, end;
  const int32_t* table;  // of the row's sequence; nullptr for a padding row

  bool sees(int64_t block) const { return block * kTile < end && (block + 1) * kTile > begin; }

  // A half that is not seen is given as the other one: it may be fetched ahead, but is not read.
  Parts parts(const Layer& layer, int64_t span) const {
    const int64_t first = span * kHalves;
    const int64_t low = part(layer, sees(first) ? first : first + 1);
    return {low, sees(first + 1) ? part(layer, first + 1) : low};
  }
  Parts first_parts(const Layer& layer) const { return table ? parts(layer, begin / kSpan) : Parts{}; }

 private:
  int64_t part(const Layer& layer, int64_t index) const {
    const int64_t block = table[index];
    TORCH_CHECK(block >= 0 && block < layer.num_blocks, "block ", block, " of ", layer.num_blocks);
    return block * layer.num_heads + head;
  }
};

// One item's G query heads on their way along the spans.
template <typename T, int G>
struct Heads {
  const Layer& layer;
  const Item& item;
  const Rule& rule;
  const float* sinks;  // [G], or nullptr
  const T* query;  // [G][D]
  float* output;   // [G][P], not yet divided by the sum of the weights
  Floats sums[G];
  float maximum[G];

  void score(int64_t span, const Parts& parts, const Parts& next, Floats (&scores)[kHalves][G]) const {
    const int64_t first = span * kHalves;
    if (item.sees(first) && item.sees(first + 1)) {
      score_tiles<G, 2>({{keys(parts, 0), keys(parts, 1)}, {keys(next, 0), keys(next, 1)},
                         {values(next, 0), values(next, 1)}}, query, layer.dim, scores);
    } else {
      const int seen = item.sees(first) ? 0 : 1;
      Floats one[1][G];
      score_tiles<G, 1>({{keys(parts, seen)}, {keys(next, 0)}, {values(next, 0)}}, query, layer.dim, one);
      for (int g = 0; g < G; ++g) scores[seen][g] = one[0][g], scores[1 - seen][g] = splat(-INFINITY);
    }
    for (int half = 0; half < kHalves; ++half) mask(span * kSpan + half * kTile, scores[half]);
  }

  Floats scaled(Floats score) const {
    score *= rule.scale;
    return rule.softcap > 0 ? rule.softcap * tanh_of(score / rule.softcap) : score;
  }

  // A sink is one more token of weight e^sink and no value.
  void begin() {
    for (int g = 0; g < G; ++g) {
      maximum[g] = sinks ? sinks[g] : -INFINITY;
      if (sinks && !std::isinf(sinks[g])) sums[g][0] = 1.0f;
    }
  }

  // Lanes that are not seen may hold anything, NaN included: they never leave their lane.
  void mask(int64_t start, Floats (&scores)[G]) const {
    const Ints lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int first = std::clamp<int64_t>(item.begin - start, 0, kTile);
    const int last = std::clamp<int64_t>(item.end - start, 0, kTile);
    for (int g = 0; g < G; ++g)
      scores[g] = (lane >= first) & (lane < last) ? scaled(scores[g]) : splat(-INFINITY);
  }

  const T* keys(const Parts& parts, int half) const {
    return static_cast<const T*>(layer.keys) + parts.of[half] * layer.dim * kTile;
  }
  const T* values(const Parts& parts, int half) const {
    return static_cast<const T*>(layer.values) + parts.of[half] * layer.padded_dim * kTile;
  }

  // Turns scores into rounded weights [half][g][token]; returns by how much what was summed before shrinks.
  Floats weigh(Floats (&scores)[kHalves][G], T (&weights)[kHalves][G * kTile]) {
    Floats moved = {};
    for (int g = 0; g < G; ++g) {
      const float highest = std::max(maximum[g], horizontal_max(larger(scores[0][g], scores[1][g])));
      moved[g] = maximum[g] - highest;
      maximum[g] = highest;
    }
    const Floats decay = exp_nonpositive(moved);
    for (int g = 0; g < G; ++g) {
      sums[g] *= decay[g];
      for (int half = 0; half < kHalves; ++half) {
        Floats weight = exp_nonpositive(scores[half][g] - maximum[g]);
        round_and_store(weight, weights[half] + g * kTile);
        sums[g] += weight;
      }
    }
    return decay;
  }

  void add(int64_t span, const Parts& parts, const T (&weights)[kHalves][G * kTile], Floats decay) {
    for (int half = 0; half < kHalves; ++half) {
      const int64_t start = span * kSpan + half * kTile;
      if (!item.sees(start / kTile)) continue;
      const int first = std::max<int64_t>(item.begin - start, 0), last = std::min<int64_t>(item.end - start, kTile);
      add_values<T, G>(values(parts, half), weights[half], decay, first, last, layer.padded_dim, output);
      decay = splat(1.0f);
    }
  }
};

// Attention of G query heads, query [G][D]; output [G][P], not yet divided by total [G].
// `upcoming` is what this thread will read first when it is done here.
template <typename T, int G>
void attend_heads(const Layer& layer, const Item& item, Parts upcoming, const Rule& rule, const float* sinks,
                  const T* query, float* output, float* total) {
  Heads<T, G> heads{layer, item, rule, sinks, query, output, {}, {}};
  heads.begin();
  std::memset(output, 0, sizeof(float) * G * layer.padded_dim);
  Parts parts = item.first_parts(layer);
  for (int64_t span = item.begin / kSpan; span * kSpan < item.end; ++span) {
    const Parts next = (span + 1) * kSpan < item.end ? item.parts(layer, span + 1) : upcoming;
    Floats scores[kHalves][G];
    T weights[kHalves][G * kTile];
    heads.score(span, parts, next, scores);
    const Floats decay = heads.weigh(scores, weights);
    heads.add(span, parts, weights, decay);
    parts = next;
  }
  for (int g = 0; g < G; ++g) total[g] = horizontal_sum(heads.sums[g]);
}

template <typename T>
void attend_heads(
    int count, const Layer& layer, const Item& item, Parts upcoming, const Rule& rule, const float* sinks,
    const T* query, float* output, float* total) {
  switch (count) {
    case 1: return attend_heads<T, 1>(layer, item, upcoming, rule, sinks, query, output, total);
    case 2: return attend_heads<T, 2>(layer, item, upcoming, rule, sinks, query, output, total);
    case 3: return attend_heads<T, 3>(layer, item, upcoming, rule, sinks, query, output, total);
    default: return attend_heads<T, 4>(layer, item, upcoming, rule, sinks, query, output, total);
  }
}

// out [dim] = output / total
template <typename T>
inline void store_row(const float* output, float total, int64_t dim, T* out) {
  int64_t d = 0;
  for (; d + kTile <= dim; d += kTile) {
    Floats divided = load(output + d) / total;
    round_and_store(divided, out + d);
  }
  for (; d < dim; ++d) from_float(output[d] / total, out + d);
}

// All `group` query heads of one item. query and out point at the first of them.
template <typename T>
void attend_item(
    const Layer& layer, const Item& item, Parts upcoming, const Rule& rule, const T* query, int64_t query_stride,
    int64_t group, T* out) {
  alignas(64) float output[kMaxHeads * kMaxDim];
  alignas(64) T queries[kMaxHeads * kMaxDim];
  float total[kMaxHeads];
  for (int64_t done = 0; done < group; done += kMaxHeads) {
    const int count = std::min<int64_t>(kMaxHeads, group - done);
    for (int g = 0; g < count; ++g)
      std::memcpy(queries + g * layer.dim, query + (done + g) * query_stride, sizeof(T) * layer.dim);
    const float* sinks = rule.sinks ? rule.sinks + item.head * group + done : nullptr;
    attend_heads<T>(count, layer, item, upcoming, rule, sinks, queries, output, total);
    for (int g = 0; g < count; ++g)
      store_row(output + g * layer.padded_dim, total[g], layer.dim, out + (done + g) * layer.dim);
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
void attend_items(const Layer& layer, const Items& items, const at::Tensor& query, const Rule& rule,
                  at::Tensor& out) {
  const int64_t group = query.size(1) / layer.num_heads;
  const auto* queries = static_cast<const T*>(query.const_data_ptr());
  auto* outputs = static_cast<T*>(out.mutable_data_ptr());
  std::atomic<int64_t> num_taken{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) {
    for (int64_t index = num_taken++, following; index < items.size(); index = following) {
      following = num_taken++;
      const Item item = items[index];
      const Parts upcoming = following < items.size() ? items[following].first_parts(layer) : Parts{};
      T* result = outputs + (item.row * query.size(1) + item.head * group) * layer.dim;
      const T* first_query = queries + item.row * query.stride(0) + item.head * group * query.stride(1);
      if (item.table)
        attend_item<T>(layer, item, upcoming, rule, first_query, query.stride(1), group, result);
      else
        std::memset(result, 0, sizeof(T) * group * layer.dim);
    }
  });
}

int64_t head_dim(const at::Tensor& keys) {
  return keys.size(2) * (keys.scalar_type() == at::kFloat ? kPair<float> : kPair<bf16>);
}

void check_rows(const at::Tensor& rows, const at::Tensor& keys, const char* name) {
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) == head_dim(keys) && rows.stride(2) == 1, name, " must be [T, heads, ",
              head_dim(keys), "] with a last stride of 1");
  TORCH_CHECK(rows.scalar_type() == keys.scalar_type(), name, " must have the dtype of the KV blocks");
}

}  // namespace

KvWriter::KvWriter(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
                   const at::Tensor& slot_mapping)
    : is_float_(keys.scalar_type() == at::kFloat), num_blocks_(keys.size(0)), num_heads_(keys.size(1)),
      dim_(head_dim(keys)), padded_dim_(values.size(3)), keys_(keys.mutable_data_ptr()),
      values_(values.mutable_data_ptr()), key_(key.const_data_ptr()), value_(value.const_data_ptr()),
      key_strides_{key.stride(0), key.stride(1)}, value_strides_{value.stride(0), value.stride(1)},
      slots_(slot_mapping.const_data_ptr<int64_t>()) {
  check_rows(key, keys, "key");
  check_rows(value, keys, "value");
  TORCH_CHECK(key.size(1) == keys.size(1) && value.size(1) == keys.size(1), "key and value need one row a KV head");
  TORCH_CHECK(slot_mapping.is_contiguous() && key.size(0) == slot_mapping.size(0) && value.size(0) == key.size(0),
              "one slot for each row");
}

template <typename T>
void KvWriter::write_as(int64_t row) const {
  constexpr int64_t pair = kPair<T>;
  const int64_t block = slots_[row] / kTile, token = slots_[row] % kTile;
  TORCH_CHECK(block < num_blocks_, "slot ", slots_[row], " lies outside the pool");
  for (int64_t head = 0; head < num_heads_; ++head) {
    const T* k = static_cast<const T*>(key_) + row * key_strides_[0] + head * key_strides_[1];
    const T* v = static_cast<const T*>(value_) + row * value_strides_[0] + head * value_strides_[1];
    const int64_t part = block * num_heads_ + head;
    T* k_out = static_cast<T*>(keys_) + part * dim_ * kTile + token * pair;
    T* v_out = static_cast<T*>(values_) + part * kTile * padded_dim_ + token / pair * padded_dim_ * pair + token % pair;
    for (int64_t d = 0; d < dim_; d += pair) std::memcpy(k_out + d * kTile, k + d, sizeof(T) * pair);
    for (int64_t d = 0; d < dim_; ++d) v_out[d * pair] = v[d];
  }
}

void KvWriter::write(int64_t row) const {
  if (slots_[row] < 0) return;
  is_float_ ? write_as<float>(row) : write_as<bf16>(row);
}

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping) {
  const KvWriter writer(keys, values, key, value, slot_mapping);
  at::parallel_for(0, key.size(0), 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) writer.write(row);
  });
}

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query, const at::Tensor& positions,
                  const at::Tensor& sequence_of_row, const at::Tensor& block_table, const Rule& rule, at::Tensor out) {
  check_rows(query, keys, "query");
  TORCH_CHECK(query.size(1) % keys.size(1) == 0, "query heads must be a multiple of KV heads");
  TORCH_CHECK(query.size(0) == positions.size(0) && query.size(0) == sequence_of_row.size(0),
              "one position for each row");
  TORCH_CHECK(out.is_contiguous() && out.sizes() == query.sizes(), "out must be contiguous, of the query's shape");
  TORCH_CHECK(positions.is_contiguous() && sequence_of_row.is_contiguous() && block_table.is_contiguous(),
              "metadata must be contiguous");
  const Layer layer{keys.const_data_ptr(), values.const_data_ptr(), keys.size(0), keys.size(1), head_dim(keys),
                    values.size(3)};
  const Items items{positions, sequence_of_row, block_table, layer.num_heads, rule.window};
  if (keys.scalar_type() == at::kFloat) return attend_items<float>(layer, items, query, rule, out);
  attend_items<bf16>(layer, items, query, rule, out);
}

void attend_by_rule(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                    const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                    double scale, int64_t window, double softcap, const std::optional<at::Tensor>& sinks,
                    at::Tensor out) {
  TORCH_CHECK(!sinks || (sinks->scalar_type() == at::kFloat && sinks->is_contiguous() &&
                         sinks->numel() == query.size(1)),
              "sinks must be fp32, one for each query head");
  const float* first_sink = sinks ? sinks->const_data_ptr<float>() : nullptr;
  const Rule rule{static_cast<float>(scale), window, static_cast<float>(softcap), first_sink};
  attend_paged(keys, values, query, positions, sequence_of_row, block_table, rule, out);
}

}  // namespace octavo
