// What happens to single rows between the products. A fixed order of operations each: bitwise batch-invariant.
#pragma once

#include "vectors.h"

namespace octavo {

// out [width] = x / rms(x) * weight. width is a multiple of 32.
inline void rms_norm(const float* x, const float* weight, float eps, int64_t width, bf16* out) {
  Floats even{}, odd{};
  for (int64_t i = 0; i < width; i += 32) {
    const Floats first = load(x + i), second = load(x + i + 16);
    even += first * first;
    odd += second * second;
  }
  const float inverse = 1.0f / std::sqrt(horizontal_sum(even + odd) / static_cast<float>(width) + eps);
  for (int64_t i = 0; i < width; i += 16) {
    Floats scaled = load(x + i) * inverse * load(weight + i);
    round_and_store(scaled, out + i);
  }
}

// Rotary embedding of one head, in place: dimension i of the first half is paired with i of the second.
// (a, b) turns to (a cos - b sin, b cos + a sin); the minus is already in signed_sin.
inline void rotate(const bf16* cos, const bf16* signed_sin, int64_t dim, bf16* head) {
  const int64_t half = dim / 2;
  int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const Floats a = load(head + i), b = load(head + half + i);
    Floats first = a * load(cos + i) + b * load(signed_sin + i);
    Floats second = b * load(cos + half + i) + a * load(signed_sin + half + i);
    round_and_store(first, head + i);
    round_and_store(second, head + half + i);
  }
  for (; i < half; ++i) {
    const float a = to_float(head[i]), b = to_float(head[half + i]);
    from_float(a * to_float(cos[i]) + b * to_float(signed_sin[i]), head + i);
    from_float(b * to_float(cos[half + i]) + a * to_float(signed_sin[half + i]), head + half + i);
  }
}

}  // namespace octavo
