// 16 floats at a time, in GCC's portable vector types: AVX-512, AVX2, SSE or NEON registers, as the CPU has them.
//
// Every function here is a fixed sequence of operations, so equal lanes give equal bits wherever they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif
#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#include <arm_neon.h>
#endif

namespace octavo {

typedef float Floats __attribute__((vector_size(64)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef float Floats4 __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

using bf16 = uint16_t;  // raw bits

template <typename V>
inline V load_raw(const void* address) {
  V vector;
  std::memcpy(&vector, address, sizeof(V));
  return vector;
}

inline Floats load(const float* address) { return load_raw<Floats>(address); }

inline Floats load(const bf16* address) {
  Words wide = __builtin_convertvector(load_raw<Halves>(address), Words) << 16;
  return reinterpret_cast<Floats>(wide);
}

inline void store(float* address, Floats vector) { std::memcpy(address, &vector, sizeof(vector)); }

inline float to_float(float value) { return value; }

inline float to_float(bf16 value) {
  uint32_t word = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &word, sizeof(result));
  return result;
}

inline void from_float(float value, float* out) { *out = value; }

inline void from_float(float value, bf16* out) {  // to nearest, ties to even; NaN stays NaN
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  *out = std::isnan(value) ? 0x7fc0 : static_cast<bf16>(rounded);
}

inline Floats splat(float value) { return Floats{} + value; }

template <typename V>
inline V larger(V a, V b) { return a > b ? a : b; }

struct Pair {  // the two halves of 16 lanes
  Floats8 low, high;
};

struct Quad {
  Floats4 low, high;
};

inline Words load_words(const bf16* address) { return load_raw<Words>(address); }

// sum + first of the pair * lower halves of the words + second * upper halves; all of them bf16.
inline Floats add_pair_products(Floats sum, uint32_t pair, Words words) {
#ifdef __AVX512BF16__
  return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(pair), (__m512bh)words);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  const auto both = vreinterpretq_bf16_u32(vdupq_n_u32(pair));
  for (int part = 0; part < 4; ++part) {
    float32x4_t four;
    bfloat16x8_t eight;
    std::memcpy(&four, reinterpret_cast<const char*>(&sum) + part * sizeof(four), sizeof(four));
    std::memcpy(&eight, reinterpret_cast<const char*>(&words) + part * sizeof(eight), sizeof(eight));
    four = vbfdotq_f32(four, eight, both);
    std::memcpy(reinterpret_cast<char*>(&sum) + part * sizeof(four), &four, sizeof(four));
  }
  return sum;
#else
  sum += to_float(static_cast<bf16>(pair)) * reinterpret_cast<Floats>(words << 16);
  return sum + to_float(static_cast<bf16>(pair >> 16)) * reinterpret_cast<Floats>(words & 0xffff0000u);
#endif
}

// Rounds in place, and stores what a T can hold of it.
inline void round_and_store(Floats& values, float* out) { store(out, values); }

inline void round_and_store(Floats& values, bf16* out) {
  const Words words = reinterpret_cast<Words>(values);
  const Words rounded = words + 0x7fffu + ((words >> 16) & 1u);
  const Words kept = values == values ? rounded : words | 0x400000u;
  values = reinterpret_cast<Floats>(kept & 0xffff0000u);
  const Halves halves = __builtin_convertvector(kept >> 16, Halves);
  std::memcpy(out, &halves, sizeof(halves));
}

inline float horizontal_max(Floats vector) {
  const auto pair = load_raw<Pair>(&vector);
  const Floats8 eight = larger(pair.low, pair.high);
  const auto quad = load_raw<Quad>(&eight);
  const Floats4 four = larger(quad.low, quad.high);
  return std::max(std::max(four[0], four[1]), std::max(four[2], four[3]));
}

inline float horizontal_sum(Floats vector) {
  const auto pair = load_raw<Pair>(&vector);
  const Floats8 eight = pair.low + pair.high;
  const auto quad = load_raw<Quad>(&eight);
  const Floats4 four = quad.low + quad.high;
  return (four[0] + four[1]) + (four[2] + four[3]);
}

// e^x for x <= 0, within 2 units in the last place; exactly 0 below -87. Cody-Waite reduction, Taylor to x^6.
inline Floats exp_nonpositive(Floats x) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, held in the lowest bits
  Floats shifted = x * 1.44269504f + kRound;
  Floats whole = shifted - kRound;
  Floats rest = x - whole * 0.693359375f;
  rest = rest - whole * -2.12194440e-4f;
  Floats series = splat(1.0f / 720);
  series = series * rest + 1.0f / 120;
  series = series * rest + 1.0f / 24;
  series = series * rest + 1.0f / 6;
  series = series * rest + 0.5f;
  series = series * rest + 1.0f;
  series = series * rest + 1.0f;
  Ints exponent = (reinterpret_cast<Ints>(shifted) - 0x4B400000 + 127) << 23;
  return x < -87.0f ? Floats{} : series * reinterpret_cast<Floats>(exponent);
}

// tanh, within 1e-7. Near 0 a series, elsewhere through e^-2|x|; NaN stays NaN.
inline Floats tanh_of(Floats x) {
  const Floats size = x < 0.0f ? -x : x;
  const Floats decayed = exp_nonpositive(-2.0f * size);
  const Floats far = (1.0f - decayed) / (1.0f + decayed);
  const Floats square = x * x;
  Floats series = splat(-17.0f / 315);
  series = series * square + 2.0f / 15;
  series = series * square - 1.0f / 3;
  series = series * square + 1.0f;
  return size < 0.125f ? x * series : (x < 0.0f ? -far : far);
}

}  // namespace octavo
