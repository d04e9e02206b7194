// Activations of 16 elements at a time, in fp32.
#pragma once

#include "vectors.h"

namespace octavo {

enum Activation : int64_t { kSilu, kGeluTanh, kGeluErf };

inline Floats sigmoid(Floats x) {
  const Floats decayed = exp_nonpositive(x < 0.0f ? x : -x);
  const Floats larger_half = 1.0f / (1.0f + decayed);
  return x < 0.0f ? decayed * larger_half : larger_half;
}

// Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26: within 1.5e-7.
inline Floats erf_of(Floats x) {
  const Floats size = x < 0.0f ? -x : x;
  const Floats t = 1.0f / (1.0f + 0.3275911f * size);
  Floats series = splat(1.061405429f);
  series = series * t - 1.453152027f;
  series = series * t + 1.421413741f;
  series = series * t - 0.284496736f;
  series = series * t + 0.254829592f;
  const Floats far = 1.0f - series * t * exp_nonpositive(-size * size);
  return x < 0.0f ? -far : far;
}

inline Floats activated(Floats x, int64_t activation) {
  if (activation == kSilu) return x * sigmoid(x);
  if (activation == kGeluErf) return 0.5f * x * (1.0f + erf_of(x * 0.70710678f));
  return 0.5f * x * (1.0f + tanh_of(0.79788456f * (x + 0.044715f * x * x * x)));
}

}  // namespace octavo
