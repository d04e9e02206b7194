// Sampling without sorting: the token at which a filter ends is found by a radix search.
//
// Ids are ranked by logit, the lower id first among equals. top-k keeps the first k, top-p the shortest prefix
// that reaches its share of what top-k left. Both are "the prefix whose measure reaches a target", the measure
// being 1 or the weight of an id. A float's bits, with their sign turned about, rise with its value, so the
// search goes down three digits of them: 11, 11 and 10 bits.
//
//   digit 1     | .. | .. | ## | .. |     measures of all ids by digit; the target is reached in ##
//   digit 2               | .. | ## |     those of the ids in ## alone
//   digit 3                    | ## |     one value is left: its ids, in their order, up to the target
#include "sampling.h"

#include <cmath>
#include <limits>
#include <vector>

#include "vectors.h"

namespace octavo {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kDigits = 2048;

inline int64_t rounded_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

inline uint32_t rank_bits(float logit) {
  const float value = logit + 0.0f;  // -0 becomes 0, which it equals
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

inline Floats load_padded(const float* start, int64_t count, float filling) {
  if (count >= kLanes) return load(start);
  Floats vector = splat(filling);
  std::memcpy(&vector, start, static_cast<size_t>(count) * sizeof(float));
  return vector;
}

// weights [size rounded up to 256] = exp((logit - highest) / temperature), 0 behind the last id.
void weigh(const float* logits, int64_t size, float highest, float temperature, float* weights) {
  const float scale = 1.0f / temperature;
  const float none = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < rounded_up(size, kBlockIds); i += kLanes) {
    const Floats row = i < size ? load_padded(logits + i, size - i, none) : splat(none);
    store(weights + i, exp_nonpositive((row - highest) * scale));
  }
}

float block_sum(const float* weights) {
  Floats even{}, odd{};
  for (int64_t i = 0; i < kBlockIds; i += 2 * kLanes) {
    even += load(weights + i);
    odd += load(weights + i + kLanes);
  }
  return horizontal_sum(even + odd);
}

double total_of(const float* weights, int64_t size) {
  double total = 0;
  for (int64_t i = 0; i < size; i += kBlockIds) total += block_sum(weights + i);
  return total;
}

// The last id of a prefix of the ranking: kept are higher logits, and equal ones up to this id.
struct Last {
  float logit;
  int64_t id;
};

// Measures of ids by one digit of their logits, from the highest down.
class Digits {
 public:
  Digits() : measures_(kDigits) {}

  void clear() { std::fill(measures_.begin(), measures_.end(), 0.0); }
  void add(uint32_t digit, double measure) { measures_[digit] += measure; }

  // The digit at which `reached`, which grows by those above it, comes to the target; the lowest in use if none.
  uint32_t find(double target, double& reached) const {
    uint32_t lowest = 0;
    double before_lowest = reached;
    for (int64_t digit = kDigits - 1; digit >= 0; --digit) {
      if (measures_[digit] == 0) continue;
      lowest = static_cast<uint32_t>(digit);
      before_lowest = reached;
      if (reached + measures_[digit] >= target) break;
      reached += measures_[digit];
    }
    reached = before_lowest;
    return lowest;
  }

 private:
  std::vector<double> measures_;
};

struct Scratch {
  Digits digits;
  std::vector<int64_t> ids;
};

// The shortest prefix whose measure reaches the target, of the ids that weigh more than `least`; some do.
template <typename Measure>
Last reach(const float* logits, const float* weights, int64_t size, double target, float least,
           const Measure& measure, Scratch& scratch) {
  double reached = 0;
  scratch.digits.clear();
  for (int64_t id = 0; id < size; ++id) {
    if (weights[id] > least) scratch.digits.add(rank_bits(logits[id]) >> 21, measure(weights[id]));
  }
  const uint32_t high = scratch.digits.find(target, reached);
  std::vector<int64_t>& ids = scratch.ids;
  ids.clear();
  for (int64_t id = 0; id < size; ++id) {
    if (weights[id] > least && rank_bits(logits[id]) >> 21 == high) ids.push_back(id);
  }
  for (const int shift : {10, 0}) {
    const uint32_t mask = shift ? 2047u : 1023u;
    scratch.digits.clear();
    for (const int64_t id : ids) {
      scratch.digits.add(rank_bits(logits[id]) >> shift & mask, measure(weights[id]));
    }
    const uint32_t digit = scratch.digits.find(target, reached);
    std::erase_if(ids, [&](int64_t id) { return (rank_bits(logits[id]) >> shift & mask) != digit; });
  }
  size_t count = 0;
  do reached += measure(weights[ids[count++]]);
  while (reached < target && count < ids.size());
  return {logits[ids[count - 1]], ids[count - 1]};
}

// Weights of the ids behind the last one become 0.
void cut(const float* logits, int64_t size, const Last& last, float* weights) {
  const float bound = last.logit;
  for (int64_t id = 0; id <= last.id; ++id) weights[id] = logits[id] >= bound ? weights[id] : 0.0f;
  for (int64_t id = last.id + 1; id < size; ++id) weights[id] = logits[id] > bound ? weights[id] : 0.0f;
}

void filter(const float* logits, int64_t size, const Filters& filters, float* weights) {
  static thread_local Scratch scratch;
  if (filters.top_k < size) {
    const auto one = [](float) { return 1.0; };
    cut(logits, size, reach(logits, weights, size, static_cast<double>(filters.top_k), 0.0f, one, scratch),
        weights);
  }
  if (filters.top_p < 1) {
    const double total = total_of(weights, size);
    // All ids that weigh so little are together less than what top-p leaves out; half of it, for rounding.
    const double least = 0.5 * (1 - filters.top_p) * total / static_cast<double>(size);
    const auto weight = [](float value) { return static_cast<double>(value); };
    cut(logits, size,
        reach(logits, weights, size, filters.top_p * total, static_cast<float>(least), weight, scratch), weights);
  }
  if (filters.min_p > 0) {
    const auto least = static_cast<float>(filters.min_p);  // of the highest weight, which is 1
    for (int64_t id = 0; id < size; ++id) weights[id] = weights[id] >= least ? weights[id] : 0.0f;
  }
}

// The first id whose cumulative weight exceeds uniform x total; its own weight is positive.
int64_t invert(const float* weights, int64_t size, double uniform) {
  const double total = total_of(weights, size);
  const double target = std::min(uniform * total, total * (1 - 0x1p-50));
  double before = 0;
  int64_t start = 0;
  for (int64_t block = 0; block < size; block += kBlockIds) {
    const float sum = block_sum(weights + block);
    if (sum == 0) continue;
    start = block;
    if (before + sum > target) break;
    before += sum;
  }
  int64_t last = start;
  double reached = before;
  for (int64_t id = start; id < std::min(start + kBlockIds, size); ++id) {
    if (weights[id] == 0) continue;
    last = id;
    reached += weights[id];
    if (reached > target) break;
  }
  return last;
}

float block_highest(const float* logits, int64_t size) {
  const float none = -std::numeric_limits<float>::infinity();
  Floats even = splat(none), odd = splat(none);
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    even = larger(load_padded(logits + i, size - i, none), even);
    if (i + kLanes < size) odd = larger(load_padded(logits + i + kLanes, size - i - kLanes, none), odd);
  }
  return horizontal_max(larger(even, odd));
}

}  // namespace

float highest_if_finite(const float* logits, int64_t size) {
  const float none = -std::numeric_limits<float>::infinity();
  Floats highest = splat(none), poison{};
  for (int64_t i = 0; i < size; i += kLanes) {
    poison += load_padded(logits + i, size - i, 0.0f) * 0.0f;
    highest = larger(load_padded(logits + i, size - i, none), highest);
  }
  return horizontal_sum(poison) == 0 ? horizontal_max(highest) : std::numeric_limits<float>::quiet_NaN();
}

int64_t first_highest(const float* logits, int64_t size) {
  float highest = -std::numeric_limits<float>::infinity();
  int64_t start = 0;
  for (int64_t block = 0; block < size; block += kBlockIds) {
    const float found = block_highest(logits + block, std::min(kBlockIds, size - block));
    if (found > highest) highest = found, start = block;
  }
  int64_t id = start;
  while (id + 1 < size && logits[id] != highest) ++id;
  return id;
}

int64_t draw(const float* logits, int64_t size, float highest, float temperature, const Filters& filters,
             double uniform, float* weights) {
  weigh(logits, size, highest, temperature, weights);
  filter(logits, size, filters, weights);
  return invert(weights, size, uniform);
}

}  // namespace octavo
