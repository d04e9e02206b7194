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
// Spans are summed up in stretches of 1,024 positions, and these are merged in their order:
//
//   stretch   0 .. 1023 | 1024 .. 2047 | ...      each: output, sum and maximum as if nothing came before it
//
// Where spans and stretches begin depends on the position alone, and a row shares no arithmetic with another, so a
// row's result is bitwise the same in every batch, chunking and placement of blocks, whoever computes which stretch.
// Threads take whole rows; where these are few, stretches of them.
//
#include "paged_attention.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "spread.h"
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
constexpr int64_t kStretch = 1024;

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
  Parts parts(const KvBlocks& layer, int64_t span) const {
    const int64_t first = span * kHalves;
    const int64_t low = part(layer, sees(first) ? first : first + 1);
    return {low, sees(first + 1) ? part(layer, first + 1) : low};
  }
  Parts first_parts(const KvBlocks& layer) const { return table ? parts(layer, begin / kSpan) : Parts{}; }

  int64_t first_stretch() const { return begin / kStretch; }
  int64_t num_stretches() const { return table ? (end - 1) / kStretch - first_stretch() + 1 : 1; }
  Item within(int64_t stretch) const {
    return {row, head, std::max(begin, stretch * kStretch), std::min(end, (stretch + 1) * kStretch), table};
  }

 private:
  int64_t part(const KvBlocks& layer, int64_t index) const {
    const int64_t block = table[index];
    if (block < 0 || block >= layer.num_blocks)
      throw std::runtime_error("block " + std::to_string(block) + " of " + std::to_string(layer.num_blocks));
    return block * layer.num_heads + head;
  }
};

// One item's G query heads on their way along the spans.
template <typename T, int G>
struct Heads {
  const KvBlocks& layer;
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

// What positions of a row came to, for the query heads that share a pass.
struct Partial {
  alignas(64) float output[kMaxHeads * kMaxDim];  // [G][P], not yet divided by the total
  float total[kMaxHeads], maximum[kMaxHeads];

  // Takes in what the positions after these came to.
  void add(const Partial& next, int count, int64_t padded_dim) {
    for (int g = 0; g < count; ++g) {
      const float highest = std::max(maximum[g], next.maximum[g]);
      const Floats moved = {maximum[g] - highest, next.maximum[g] - highest};
      const Floats decay = exp_nonpositive(moved);
      for (int64_t d = g * padded_dim; d < (g + 1) * padded_dim; d += kTile)
        store(output + d, load(output + d) * decay[0] + load(next.output + d) * decay[1]);
      total[g] = total[g] * decay[0] + next.total[g] * decay[1];
      maximum[g] = highest;
    }
  }
};

// Attention of G query heads, query [G][D], over one stretch.
// `upcoming` is what this thread will read first when it is done here.
template <typename T, int G>
void attend_heads(const KvBlocks& layer, const Item& item, Parts upcoming, const Rule& rule, const float* sinks,
                  const T* query, Partial& partial) {
  Heads<T, G> heads{layer, item, rule, sinks, query, partial.output, {}, {}};
  heads.begin();
  std::memset(partial.output, 0, sizeof(float) * G * layer.padded_dim);
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
  for (int g = 0; g < G; ++g) {
    partial.total[g] = horizontal_sum(heads.sums[g]);
    partial.maximum[g] = heads.maximum[g];
  }
}

template <typename T>
void attend_heads(int count, const KvBlocks& layer, const Item& item, Parts upcoming, const Rule& rule,
                  const float* sinks, const T* query, Partial& partial) {
  switch (count) {
    case 1: return attend_heads<T, 1>(layer, item, upcoming, rule, sinks, query, partial);
    case 2: return attend_heads<T, 2>(layer, item, upcoming, rule, sinks, query, partial);
    case 3: return attend_heads<T, 3>(layer, item, upcoming, rule, sinks, query, partial);
    default: return attend_heads<T, 4>(layer, item, upcoming, rule, sinks, query, partial);
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

// The rows of one call, as pairs of row and KV head.
struct Items {
  const KvBlocks& layer;
  const HeadRows& query;
  const Places& places;
  const Rule& rule;
  void* out;

  int64_t size() const { return query.num_rows * layer.num_heads; }
  int64_t group() const { return query.num_heads / layer.num_heads; }
  int64_t num_passes() const { return (group() + kMaxHeads - 1) / kMaxHeads; }

  Item operator[](int64_t index) const {
    const int64_t row = index / layer.num_heads, head = index % layer.num_heads;
    const int64_t sequence = places.sequence_of_row[row], end = places.positions[row] + 1;
    if (sequence < 0) return {row, head, 0, 0, nullptr};
    if (sequence >= places.num_sequences || end <= 0 || end > places.table_width * kTile)
      throw std::runtime_error("row " + std::to_string(row) + " at position " + std::to_string(end - 1) +
                               " lies outside the block table");
    const int64_t begin = rule.window > 0 ? std::max<int64_t>(0, end - rule.window) : 0;
    return {row, head, begin, end, places.block_table + sequence * places.table_width};
  }
  Parts first_parts(int64_t index) const { return index < size() ? (*this)[index].first_parts(layer) : Parts{}; }
};

// One of the passes over an item that its query heads need, kMaxHeads at a time.
template <typename T>
class Pass {
 public:
  Pass(const Items& items, const Item& item, int64_t number)
      : items_(items), item_(item), first_head_(item.head * items.group() + number * kMaxHeads),
        count_(std::min<int64_t>(kMaxHeads, items.group() - number * kMaxHeads)) {
    const HeadRows& query = items.query;
    const T* first = static_cast<const T*>(query.data) + item.row * query.row_stride + first_head_ * query.head_stride;
    for (int g = 0; g < count_; ++g)
      std::memcpy(queries_ + g * items.layer.dim, first + g * query.head_stride, sizeof(T) * items.layer.dim);
  }

  void attend(int64_t stretch, Parts upcoming, Partial& partial) const {
    const float* sinks = items_.rule.sinks && stretch == item_.first_stretch() ? items_.rule.sinks + first_head_ : nullptr;
    attend_heads<T>(count_, items_.layer, item_.within(stretch), upcoming, items_.rule, sinks, queries_, partial);
  }

  void add(const Partial& next, Partial& whole) const { whole.add(next, count_, items_.layer.padded_dim); }

  void store(const Partial& whole) const {
    const int64_t dim = items_.layer.dim;
    T* target = static_cast<T*>(items_.out) + (item_.row * items_.query.num_heads + first_head_) * dim;
    for (int g = 0; g < count_; ++g)
      store_row(whole.output + g * items_.layer.padded_dim, whole.total[g], dim, target + g * dim);
  }

 private:
  const Items& items_;
  const Item& item_;
  int64_t first_head_;
  int count_;
  alignas(64) T queries_[kMaxHeads * kMaxDim];
};

template <typename T>
void fill_with_zeros(const Items& items, const Item& item) {
  const int64_t size = items.group() * items.layer.dim;
  T* target = static_cast<T*>(items.out) + item.row * items.query.num_heads * items.layer.dim + item.head * size;
  std::memset(target, 0, sizeof(T) * size);
}

template <typename T>
void attend_item(const Items& items, const Item& item, Parts upcoming) {
  if (!item.table) return fill_with_zeros<T>(items, item);
  for (int64_t number = 0; number < items.num_passes(); ++number) {
    const Pass<T> pass(items, item, number);
    Partial whole;
    const int64_t first = item.first_stretch(), last = first + item.num_stretches() - 1;
    const auto after = [&](int64_t stretch) {
      return stretch < last ? item.within(stretch + 1).first_parts(items.layer) : upcoming;
    };
    pass.attend(first, after(first), whole);
    for (int64_t stretch = first + 1; stretch <= last; ++stretch) {
      Partial next;
      pass.attend(stretch, after(stretch), next);
      pass.add(next, whole);
    }
    pass.store(whole);
  }
}

// Each thread takes items, and knows its next one early enough to fetch what it reads first.
template <typename T>
void attend_items(const Items& items) {
  std::atomic<int64_t> num_taken{0};
  on_threads(num_threads(), [&] {
    for (int64_t index = num_taken++, following; index < items.size(); index = following) {
      following = num_taken++;
      attend_item<T>(items, items[index], items.first_parts(following));
    }
  });
}

// Few items with long contexts, in pieces: one stretch of one item each. Whoever ends an item's last piece merges them.
template <typename T>
class Pieces {
 public:
  explicit Pieces(const Items& items) : items_(items), left_(items.size()) {
    for (int64_t index = 0; index < items.size(); ++index) {
      const int64_t count = items[index].num_stretches();
      starts_.push_back(owners_.size());
      left_[index] = count;
      owners_.insert(owners_.end(), count, index);
    }
    if (partials_.size() < owners_.size() * items.num_passes()) partials_.resize(owners_.size() * items.num_passes());
    room_ = partials_.data();
  }

  void attend() {
    spread(owners_.size(), [&](int64_t piece) {
      const int64_t index = owners_[piece];
      const Item item = items_[index];
      if (!item.table) return fill_with_zeros<T>(items_, item);
      for (int64_t number = 0; number < items_.num_passes(); ++number)
        Pass<T>(items_, item, number).attend(item.first_stretch() + piece - starts_[index], {}, of(piece, number));
      if (--left_[index] == 0) merge(index, item);
    });
  }

 private:
  Partial& of(int64_t piece, int64_t number) { return room_[piece * items_.num_passes() + number]; }

  void merge(int64_t index, const Item& item) {
    for (int64_t number = 0; number < items_.num_passes(); ++number) {
      const Pass<T> pass(items_, item, number);
      Partial& whole = of(starts_[index], number);
      for (int64_t next = 1; next < item.num_stretches(); ++next) pass.add(of(starts_[index] + next, number), whole);
      pass.store(whole);
    }
  }

  const Items& items_;
  std::vector<int64_t> owners_, starts_;  // the item of each piece; the first piece of each item
  std::vector<std::atomic<int64_t>> left_;
  Partial* room_;
  static thread_local std::vector<Partial> partials_;  // kept from call to call
};

template <typename T>
thread_local std::vector<Partial> Pieces<T>::partials_;

constexpr int64_t kItemsEach = 4;  // items for each thread that even out by themselves

bool is_worth_pieces(const Items& items) {
  if (items.size() >= kItemsEach * num_threads()) return false;
  for (int64_t index = 0; index < items.size(); ++index)
    if (items[index].num_stretches() > 1) return true;
  return false;
}

template <typename T>
void attend_as(const Items& items) {
  if (is_worth_pieces(items)) return Pieces<T>(items).attend();
  attend_items<T>(items);
}

}  // namespace

template <typename T>
void KvWriter::write_as(int64_t row) const {
  constexpr int64_t pair = kPair<T>;
  const int64_t block = slots[row] / kTile, token = slots[row] % kTile;
  if (block >= blocks.num_blocks)
    throw std::runtime_error("slot " + std::to_string(slots[row]) + " lies outside the pool");
  for (int64_t head = 0; head < blocks.num_heads; ++head) {
    const T* k = static_cast<const T*>(key.data) + row * key.row_stride + head * key.head_stride;
    const T* v = static_cast<const T*>(value.data) + row * value.row_stride + head * value.head_stride;
    const int64_t part = block * blocks.num_heads + head, width = blocks.padded_dim;
    T* k_out = static_cast<T*>(blocks.keys) + part * blocks.dim * kTile + token * pair;
    T* v_out = static_cast<T*>(blocks.values) + part * kTile * width + token / pair * width * pair + token % pair;
    for (int64_t d = 0; d < blocks.dim; d += pair) std::memcpy(k_out + d * kTile, k + d, sizeof(T) * pair);
    for (int64_t d = 0; d < blocks.dim; ++d) v_out[d * pair] = v[d];
  }
}

void KvWriter::write(int64_t row) const {
  if (slots[row] < 0) return;
  blocks.is_float ? write_as<float>(row) : write_as<bf16>(row);
}

void attend(const KvBlocks& blocks, const HeadRows& query, const Places& places, const Rule& rule, void* out) {
  const Items items{blocks, query, places, rule, out};
  blocks.is_float ? attend_as<float>(items) : attend_as<bf16>(items);
}

}  // namespace octavo
