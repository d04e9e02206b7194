// One token for one row of logits. Every row is worked on by one thread in a fixed order, so its token is the
// same in any batch.
#pragma once

#include <cstdint>

namespace octavo {

constexpr int64_t kBlockIds = 256;  // ids whose weights are added up on their own

struct Filters {
  int64_t top_k;  // the number of ids where it is off
  double top_p;   // 1 where it is off
  double min_p;
};

// The highest logit, or NaN where one of them is not finite.
float highest_if_finite(const float* logits, int64_t size);

// The id of the highest logit, the lowest id among equals; any id where one of them is NaN.
int64_t first_highest(const float* logits, int64_t size);

// The draw at `uniform` (0 < uniform < 1) in id order, from what the filters leave of exp(logit / temperature).
// `highest`: the highest of the logits, finite; others may be -inf. weights: room for `size` rounded up to 256.
int64_t draw(const float* logits, int64_t size, float highest, float temperature, const Filters& filters,
             double uniform, float* weights);

}  // namespace octavo
